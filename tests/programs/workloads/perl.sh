# SPDX-License-Identifier: Apache-2.0
# needs: perl
# timeout: 60
set -eu
cat >work.pl <<'PERL'
use strict; use warnings; use Fcntl qw(:DEFAULT :seek :flock); use File::Copy; use File::Temp qw(tempfile);
open(my $out, '>', 'out.txt') or die; print $out "line $_\n" for 1 .. 20000; close $out;
open(my $in, '<', 'out.txt') or die; my $sum = 0; while (<$in>) { $sum += length } print "$sum\n";
seek($in, 100, SEEK_SET); my $line = <$in>; print $line, tell($in), "\n"; close $in;
open(my $both, '+<', 'out.txt') or die; seek($both, 5, 0); print $both "XXXX"; seek($both, 0, 0);
read($both, my $head, 20); print $head, "\n"; truncate($both, 1000); print -s $both, "\n"; close $both;
sysopen(my $raw, 'raw.bin', O_RDWR | O_CREAT) or die; syswrite($raw, pack('N*', 1 .. 5000));
sysseek($raw, 400, SEEK_SET); sysread($raw, my $bytes, 40); print join(',', unpack('N*', $bytes)), "\n";
flock($raw, LOCK_EX) or die; flock($raw, LOCK_UN) or die; close $raw;
copy('raw.bin', 'copy.bin') or die; move('copy.bin', 'moved.bin') or die; print -s 'moved.bin', "\n";
open(my $append, '>>', 'out.txt') or die; print $append "appended\n"; close $append;
my ($handle, $name) = tempfile(DIR => '.'); print $handle "temporary"; close $handle; print -s $name, "\n";
unlink $name;
utime(1234567890, 1234567891, 'raw.bin'); print join(' ', (stat 'raw.bin')[7, 9]), "\n";
open(my $dup, '>&', \*STDOUT) or die; print $dup "dup\n"; close $dup;
my $pid = fork(); if (!$pid) { open(my $f, '>', 'child.txt'); print $f "child"; close $f; exit 0 } waitpid($pid, 0);
print -s 'child.txt', "\n"; print `cat child.txt`, "\n";
opendir(my $dir, '.'); print join(' ', sort grep { !/^\./ } readdir $dir), "\n";
{ local @ARGV = ('out.txt'); local $^I = '.bak'; while (<>) { s/line/LINE/; print } }
print -s 'out.txt', ' ', -s 'out.txt.bak', "\n";
PERL
perl work.pl
perl -ne 'print if /LINE 1/' out.txt | head -3
perl -pi -e 's/LINE/row/' out.txt
sha256sum out.txt
