#!/usr/bin/env node
// `kit_uploads clean …` is `kit uploads clean …`.
process.argv.splice(2, 0, 'uploads');
await import('./kit.js');
