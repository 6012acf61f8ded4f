#!/usr/bin/env node
// `kit_webhooks deliver …` is `kit webhooks deliver …`.
process.argv.splice(2, 0, 'webhooks');
await import('./kit.js');
