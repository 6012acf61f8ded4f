import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Exact: seen to install from the registry. One of its dependencies asks for a dist-tag of node-fetch that mirrors may not have. */
const VERDACCIO = { verdaccio: '6.10.4' };
const OVERRIDES = { 'node-fetch': '2.7.0' };

export interface LocalRegistry extends AsyncDisposable {
  readonly url: string;
  /** Settings of npm for this registry, as environment variables. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A real npm registry on loopback. Packages whose names contain `own` stay in it; all others come from the registry of this machine. */
export async function startLocalRegistry(folder: string, port: number, own: string): Promise<LocalRegistry> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: VERDACCIO, overrides: OVERRIDES }));
  npm(['install', '--no-audit', '--no-fund', '--ignore-scripts'], folder);
  const upstream = npm(['config', 'get', 'registry'], folder).trim();
  const publishing = { access: '$all', publish: '$all' };
  writeFileSync(
    join(folder, 'config.yaml'),
    // JSON is YAML.
    JSON.stringify({
      storage: join(folder, 'storage'),
      uplinks: { upstream: { url: upstream, timeout: '120s', maxage: '60m' } },
      packages: { [`*${own}*`]: publishing, [`@*/*${own}*`]: publishing, '**': { access: '$all', proxy: 'upstream' } },
      auth: { htpasswd: { file: join(folder, 'htpasswd'), max_users: -1 } },
      log: { type: 'stdout', level: 'warn' },
    }),
  );
  const url = `http://127.0.0.1:${port}/`;
  const server = spawn(
    process.execPath,
    [join(folder, 'node_modules/verdaccio/bin/verdaccio'), '--config', 'config.yaml', '--listen', `127.0.0.1:${port}`],
    { cwd: folder, env: { ...process.env, NODE_OPTIONS: '' }, stdio: 'ignore' },
  );
  const stop = async (): Promise<void> => {
    if (server.exitCode !== null) return;
    server.kill('SIGKILL');
    await once(server, 'exit');
  };
  await waitUntilUp(`${url}-/ping`, () => server.exitCode).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  // npm sends no package without a token, whatever it is.
  const userconfig = join(folder, 'npmrc');
  writeFileSync(userconfig, `registry=${url}\n//127.0.0.1:${port}/:_authToken=anyone\nupdate-notifier=false\n`);
  return { url, environment: { npm_config_userconfig: userconfig, npm_config_cache: join(folder, 'cache') }, [Symbol.asyncDispose]: stop };
}

async function waitUntilUp(url: string, exitCode: () => number | null): Promise<void> {
  for (let waitedMs = 0; waitedMs < 120_000; waitedMs += 100) {
    if (exitCode() !== null) throw new Error(`verdaccio ended with ${exitCode()}`);
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return;
    await new Promise((later) => setTimeout(later, 100));
  }
  throw new Error('verdaccio did not start within two minutes');
}

function npm(args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${stderr}`);
  return stdout;
}
