import { afterAll, vi } from 'vitest';
import { isBehindPooler } from './behind-pooler.ts';

// PgBouncer in transaction mode keeps no prepared statements; programs that tests start inherit the setting.
if (isBehindPooler()) process.env['DATABASE_PREPARE'] = 'off';

// Runs before every test file. The next file may run in the same process: it finds real timers, the environment and the folder as they were.
const environment = { ...process.env };
const folder = process.cwd();

afterAll(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
  if (process.cwd() !== folder) process.chdir(folder);
});
