#!/usr/bin/env node
// Runs the program in the package for this platform, which npm chose among the optional dependencies.
"use strict";
const { spawn } = require("node:child_process");

const platform = `@NPM@-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${platform}/codescout`);
} catch {
  console.error(`codescout: the package ${platform} is missing: either there is none for this platform, or`);
  console.error("codescout: optional dependencies were left out (npm install --include=optional)");
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`codescout: ${error.message}`);
  process.exit(2);
});
// A terminal sends SIGINT to both; other signals reach only this process.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
