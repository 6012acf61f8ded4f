// Prints how many milliseconds it took, in a fresh process, to start a configuration server, or only to read and parse its files.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigServer, loadServerConfig } from '@kit/config-server';
import { parse } from 'smol-toml';

const [mode = '', folder = ''] = process.argv.slice(2);
const started = performance.now();
if (mode === 'parse') {
  for (const name of readdirSync(join(folder, 'sections'))) {
    const text = readFileSync(join(folder, 'sections', name), 'utf8');
    if (name.endsWith('.toml')) parse(text);
    else JSON.parse(text);
  }
} else {
  await ConfigServer.start(loadServerConfig(join(folder, 'server.toml')), { log: () => undefined });
}
process.stdout.write(`${performance.now() - started}\n`, () => process.exit(0));
