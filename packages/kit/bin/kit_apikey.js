#!/usr/bin/env node
// `kit_apikey create …` is `kit apikey create …`.
process.argv.splice(2, 0, 'apikey');
await import('./kit.js');
