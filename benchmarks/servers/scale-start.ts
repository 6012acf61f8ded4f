// Prints how many milliseconds of time and of CPU it took, in a fresh process, to start a configuration server, or only to read and
// parse its files.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigServer, loadServerConfig } from '@kit/config-server';
import { parse } from 'smol-toml';

const [mode = '', folder = ''] = process.argv.slice(2);
const started = performance.now();
const before = process.cpuUsage();
if (mode === 'parse') {
  for (const name of readdirSync(join(folder, 'sections'))) {
    const text = readFileSync(join(folder, 'sections', name), 'utf8');
    if (name.endsWith('.toml')) parse(text);
    else JSON.parse(text);
  }
} else {
  await ConfigServer.start(loadServerConfig(join(folder, 'server.toml')), { log: () => undefined });
}
const { user, system } = process.cpuUsage(before);
process.stdout.write(`${performance.now() - started} ${(user + system) / 1_000}\n`, () => process.exit(0));
