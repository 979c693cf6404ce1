#!/usr/bin/env node
/** Draws examples/board/board.webp with the page itself. usage: FEEDD_BIN_DIR=… node tests/picture.js */

import { writeFileSync } from "node:fs";

import { Browser } from "./chromium.js";
import { Gateway } from "./gateway.js";
import { Daemon } from "./support.js";

const ELEMENTS = [
  [10, "Smoke in the cellar", "cellar", "9:12"],
  [9, "Door open", "hall", "8:10"],
  [9, "Train 17:04 is 12 minutes late", "station", "16:40"],
  [8, "Rain at five", "weather", "15:02"],
  [8, "Window of the bath open", "bath", "14:28"],
  [7, "Battery of the hall sensor at 8 %", "sensor", "12:18"],
  [7, "Meeting moved to 15:30", "calendar", "11:55"],
  [6, "Call back Ann", "phone", "13:20"],
  [6, "Robot stuck under the sofa", "robot", "10:46"],
  [5, "Bins out: paper", "calendar", "7:00"],
  [5, "Parcel at the neighbour's", "door", "10:34"],
  [4, "Washing machine done", "kitchen", "16:26"],
  [3, "Milk", "shop", "11:16"],
  [1, "Backup finished", "server", "4:24"],
  [2, "Update of the gateway available", "server", "8:30"],
  [3, "Water the ficus", "calendar", "9:00"],
  [2, "Heating: 19.5 °C", "cellar", "13:40"],
  [1, "New photos from Lisbon", "phone", "14:42"],
  [1, "Invoice 2041 paid", "bank", "15:44"],
];

const daemon = await new Daemon(null, "--durability", "memory").start();
const gateway = await new Gateway(daemon, "inbox").start();
const browser = await Browser.start(1100, 600);
const client = await daemon.client().ready();
try {
  const sort = [{ by: "$.priority", order: "descending" }];
  const bins = [{ name: "urgent", filter: "@.priority >= 8", sort }, { name: "today", filter: "@.priority >= 4", sort }, {
    name: "later",
  }];
  await client.call("define", { feed: "inbox", kind: "collection", exclusive: true, bins });
  await client.push("inbox", ...ELEMENTS.map(([priority, text, from, at], id) => ({ id, priority, text, from, at })));
  await browser.open(gateway.url);
  await browser.until(`document.querySelector("#digest").textContent.length === 8`);
  writeFileSync(new URL("../examples/board/board.webp", import.meta.url), await browser.picture({ format: "webp", quality: 82 }));
} finally {
  client.close();
  await browser.stop();
  await gateway.stop();
  await daemon.stop();
}
