// The parts of Vega that figures of a report are drawn with: `renew` bundles them into vendor/vega.min.js. Maps, trees, forces,
// clouds of words and the like stay outside, which is a fifth of the whole.
import { transforms } from "vega-dataflow";
import * as encode from "vega-encode";
import { defaultLocale } from "vega-format";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";
import { parse } from "vega-parser";
import * as data from "vega-transforms";
import { Error, extend } from "vega-util";
import { View } from "vega-view";
import * as views from "vega-view-transforms";

extend(transforms, data, views, encode);
globalThis.vega = { Error, View, defaultLocale, parse };
globalThis.vegaLite = { compile };
globalThis.vegaInterpreter = expressionInterpreter;
