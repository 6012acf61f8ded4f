import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const kit = (path: string) => JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
const program = (modules: string) => `
import { registerHooks } from 'node:module';
const loaded = new Set();
registerHooks({ resolve(specifier, context, next) {
  const name = /^(@opentelemetry\\/[\\w-]+|prom-client)/.exec(specifier)?.[1];
  if (name !== undefined) loaded.add(name);
  return next(specifier, context);
} });
const { createApp, Controller, route, allowAny } = await import(${kit('index.ts')});
const { requestLog } = await import(${kit('middleware/index.ts')});
const { webhooks } = await import(${kit('contrib/webhooks/index.ts')});
const { audit } = await import(${kit('contrib/audit/index.ts')});
class Things extends Controller { one = route.get('/', { permission: allowAny }, async ({ db }) => void (await db.query('select 1'))); }
const app = createApp({
  database: 'sqlite::memory:', log: { level: 'silent' }, middleware: [requestLog()], mount: { '/v1': { '/things': Things } },
  modules: [webhooks(), audit(), ${modules}],
});
const { statusCode } = await app.inject({ url: '/v1/things', headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' } });
await app.close();
console.log(JSON.stringify({ statusCode, loaded: [...loaded] }));
`;

async function run(modules: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=source', '--input-type=module', '-e', program(modules)]);
  return JSON.parse(stdout);
}

test('an application without tracing() and metrics() loads neither OpenTelemetry nor the metrics library', async () => {
  expect(await run('')).toEqual({ statusCode: 204, loaded: [] });
});

test('with tracing() the API is loaded, and no SDK', async () => {
  expect(await run(`(await import(${kit('contrib/tracing/index.ts')})).tracing()`)).toEqual({
    statusCode: 204,
    loaded: ['@opentelemetry/api'],
  });
});
