// SPDX-License-Identifier: Apache-2.0
//
// How the page looks: light and dark as the reader's system wants it, on paper, and on a narrow
// screen.
//
// The colours of the charts are those of M. Okabe and K. Ito (Color Universal Design, 2008), which
// people with any kind of colour blindness tell apart; on a dark ground they are a little lighter.
#pragma once

namespace cairn::cli {

inline constexpr const char* kPageStyle = R"css(
:root{color-scheme:light dark;--ground:#fff;--text:#1b1f24;--soft:#59636e;--line:#d8dee4;
--panel:#f6f8fa;
--c0:#0072b2;--c1:#56b4e9;--c2:#009e73;--c3:#d55e00;--c4:#cc79a7;--c5:#e69f00;--c6:#7a6fbe;
--c7:#6e7781}
@media (prefers-color-scheme:dark){:root{--ground:#12161b;--text:#e4e8ec;--soft:#9aa4af;
--line:#303842;
--panel:#1a2027;--c0:#3d9bd6;--c1:#8fd0f5;--c2:#2fc39b;--c3:#f08033;--c4:#e09cc3;--c5:#f2bc4a;
--c6:#a79ee0;--c7:#98a1aa}}
*{box-sizing:border-box}
html{background:var(--ground);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,sans-serif}
body{max-width:60rem;margin:0 auto;padding:2rem 1.25rem 4rem}
header{border-bottom:1px solid var(--line);padding-bottom:1.25rem}
header p.kind{margin:0;color:var(--soft);font-size:.875rem}
h1{font-size:1.6rem;line-height:1.3;margin:.25rem 0 .75rem;font-weight:650;text-wrap:balance}
h2{font-size:1.15rem;margin:2.5rem 0 1rem;font-weight:650}
h3{font-size:1rem;margin:1.5rem 0 .5rem}
code{font:.875em ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
.remark{border-left:4px solid var(--c3);background:var(--panel);padding:.6rem .9rem;
margin:.75rem 0}
.how{color:var(--soft);font-size:.875rem;margin:.75rem 0 0}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.1rem,1fr));gap:.6rem;
margin:1.25rem 0 0}
dl.facts div{background:var(--panel);border-radius:6px;padding:.55rem .7rem}
dt{color:var(--soft);font-size:.8rem}
dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:0 0 1.75rem;break-inside:avoid}
figcaption{font-size:.9rem;color:var(--soft);margin-bottom:.3rem}
figcaption b{color:var(--text)}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0 0 .8rem;
padding:0;font-size:.8rem}
ul.legend i{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;margin-right:.4rem;
vertical-align:-.08rem}
.plot{display:grid;grid-template-columns:5.2rem 1fr;grid-template-rows:11rem auto}
.plot svg{grid-area:1/2;width:100%;height:100%;display:block;
border-left:1px solid var(--soft);border-bottom:1px solid var(--soft)}
.plot .y{grid-area:1/1;display:flex;flex-direction:column;justify-content:space-between;
margin:-.6rem .5rem -.6rem 0;text-align:right;font-size:.75rem;color:var(--soft);
line-height:1.2rem;font-variant-numeric:tabular-nums;white-space:nowrap}
.plot .x{grid-area:2/2;display:flex;justify-content:space-between;font-size:.75rem;
color:var(--soft);padding-top:.25rem;
font-variant-numeric:tabular-nums}
path{vector-effect:non-scaling-stroke}
.grid{stroke:var(--line);stroke-width:1;fill:none}
.mark{stroke:var(--text);stroke-width:1.5;stroke-dasharray:4 3;fill:none}
.line{fill:none!important;stroke-width:2;stroke-linejoin:round}
i.c0{background:var(--c0)}i.c1{background:var(--c1)}i.c2{background:var(--c2)}i.c3{
background:var(--c3)}
i.c4{background:var(--c4)}i.c5{background:var(--c5)}i.c6{background:var(--c6)}i.c7{
background:var(--c7)}
.c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}.c2{fill:var(--c2);
stroke:var(--c2)}
.c3{fill:var(--c3);stroke:var(--c3)}.c4{fill:var(--c4);stroke:var(--c4)}.c5{fill:var(--c5);
stroke:var(--c5)}
.c6{fill:var(--c6);stroke:var(--c6)}.c7{fill:var(--c7);stroke:var(--c7)}
.area,rect{stroke:none!important}
.heat{border:1px solid var(--line);height:3rem}.heat svg{display:block;width:100%;height:100%}
details{margin:.35rem 0 0 5.2rem;font-size:.85rem}
summary{color:var(--soft);cursor:pointer}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;
vertical-align:top;white-space:nowrap}
thead th{color:var(--soft);font-weight:500;vertical-align:bottom;white-space:normal}
tbody th{font-weight:500}
#processes th:nth-child(2){text-align:left}
th:first-child{text-align:left;padding-left:0}
td.words,th.words{text-align:left;white-space:normal}
th.path{white-space:normal;overflow-wrap:anywhere;min-width:14rem}
.bar{display:inline-block;width:5rem;height:.6rem;background:var(--panel);border-radius:2px;
margin-right:.5rem;overflow:hidden}
.bar i{display:block;height:100%;border-radius:2px}
.none{color:var(--soft)}
:focus-visible{outline:3px solid var(--c0);outline-offset:3px;border-radius:3px}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.75rem;color:var(--soft);
font-size:.8rem}
@media (max-width:36rem){body{padding:1.25rem .9rem 3rem}h1{font-size:1.3rem}.plot{
grid-template-columns:4.4rem 1fr;
grid-template-rows:9rem auto}.plot .x span:nth-child(even){display:none}details{margin-left:0}}
@media print{html{font-size:11px;background:#fff}body{max-width:none;padding:0}summary{
display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}h2{break-after:avoid}tr{
break-inside:avoid}}
)css";

}  // namespace cairn::cli
