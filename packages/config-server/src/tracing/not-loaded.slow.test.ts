import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { FILES, SERVER_TOML, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

const here = import.meta.dirname;

/** The modules of OpenTelemetry that a process has loaded after it served a request. */
async function loadedModules(toml: string): Promise<string[]> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, 'server.toml': toml });
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    const { ConfigServer, loadServerConfig } = await import('@kit/config-server');
    const config = loadServerConfig(${JSON.stringify(join(folder, 'server.toml'))}, {});
    const server = await ConfigServer.start(config, { audit: () => undefined, log: () => undefined });
    await (await fetch('http://127.0.0.1:' + server.address.port + '/healthz')).text();
    await server.stop();
    console.log(JSON.stringify(loaded.filter((url) => url.includes('opentelemetry'))));
    process.exit(0);
  `;
  const options = ['--conditions=source', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: join(here, '..', '..') });
  return JSON.parse(stdout) as string[];
}

test('a process loads OpenTelemetry only when server.tracing asks for it', async () => {
  expect(await loadedModules(SERVER_TOML)).toEqual([]);
  expect(await loadedModules(SERVER_TOML.replace('[server]', '[server]\ntracing = true'))).not.toEqual([]);
});
