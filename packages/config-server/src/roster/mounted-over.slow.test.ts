import { execFileSync, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, SERVER_TOML, TOKEN, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

/** Runs a program that may mount file systems, which nobody else sees. */
const ALONE = ['--user', '--map-root-user', '--mount'];
const isAllowed = spawnSync('unshare', [...ALONE, 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0;

// The server runs in the namespace of the mount, so it is started by a program of its own.
test.skipIf(!isAllowed)('a file system that is mounted over a folder is read and watched after a reload on request', async () => {
  const folder = await temporaryFolder();
  const toml = SERVER_TOML.replace('"billing.toml"', '"conf/billing.toml"');
  await writeFiles(folder, {
    'server.toml': toml,
    'orders.yaml': FILES['orders.yaml']!,
    'conf/billing.toml': '[billing]\nname = "below"\n',
  });
  const script = `
    const { execFileSync } = await import('node:child_process');
    const { writeFileSync } = await import('node:fs');
    const { ConfigServer, loadServerConfig } = await import(${JSON.stringify(import.meta.resolve('../index.ts'))});
    const config = loadServerConfig(${JSON.stringify(join(folder, 'server.toml'))}, {});
    const server = await ConfigServer.start(config, { audit: () => undefined, log: () => undefined });
    const name = async () => (await (await fetch('http://127.0.0.1:' + server.address.port + '/billing/prod', { headers: { authorization: 'Bearer ${TOKEN}' } })).json()).name;
    const write = (name) => writeFileSync(${JSON.stringify(join(folder, 'conf/billing.toml'))}, '[billing]\\nname = "' + name + '"\\n');
    execFileSync('mount', ['-t', 'tmpfs', 'none', ${JSON.stringify(join(folder, 'conf'))}]);
    write('mounted');
    await server.reload();
    console.log(await name());
    write('changed');
    for (const end = Date.now() + 60_000; (await name()) !== 'changed' && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(await name());
    process.exit();`;
  const node = [process.execPath, '--conditions=source', '--input-type=module', '-e', script];
  const printed = execFileSync('unshare', [...ALONE, ...node]).toString();
  expect(printed.trim().split('\n')).toEqual(['mounted', 'changed']);
});
