// SPDX-License-Identifier: MIT OR Apache-2.0
// Decodes a message by protobufjs: node decode.mjs MODULES PROTO TYPE FILE.  Prints JSON, with numbers of 64 bits as texts.
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";

const [modules, proto, type, file] = process.argv.slice(2);
const protobuf = createRequire(modules + "/")("protobufjs");
const root = protobuf.parse(readFileSync(proto, "utf8"), {keepCase: true}).root;
const message = root.lookupType(type);
const decoded = message.decode(readFileSync(file));
const known = message.encode(decoded).finish().length;
if (known !== readFileSync(file).length) throw new Error("it has fields that are not known");
console.log(JSON.stringify(message.toObject(decoded, {longs: String, bytes: String, defaults: true})));
