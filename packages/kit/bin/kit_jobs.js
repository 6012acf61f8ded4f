#!/usr/bin/env node
// `kit_jobs work …` is `kit jobs work …`.
process.argv.splice(2, 0, 'jobs');
await import('./kit.js');
