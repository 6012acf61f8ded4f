import { expect, test } from 'vitest';
import { eventually, SERVER_TOML, startServer } from '../../test/running-server.ts';

const LINES_TOML = SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 20\nexplain_lines = true').replace(
  'files = ["billing.toml"]',
  'files = ["billing.toml", "more.json"]\nenv_prefix = "BILL__"',
);
const FILES = {
  'billing.toml': '# billing\n[billing]\nname = "a"\n\n  [billing.pool]\n  maxSize = 5\n',
  'more.json': '{"billing":\n  {"name":"b"}}',
  'orders.yaml': 'orders: {}\n',
};

test('with explain_lines a row has the line and column of the key in the file that wins', async () => {
  const running = await startServer({ toml: LINES_TOML, files: FILES, environment: { BILL__POOL__MAXSIZE: '9' } });
  const explain = async (path: string) => (await running.ask(`/billing/prod/explain/${path}`)).json().rows;
  expect(await explain('pool.maxSize')).toEqual([
    { layer: 'file', origin: 'file billing.toml', value: '***', line: 6, column: 3 },
    { layer: 'environment', origin: 'env BILL__POOL__MAXSIZE', value: '***', line: null, column: null },
  ]);
  expect(await explain('name')).toEqual([
    { layer: 'file', origin: 'file more.json', value: '***', line: 2, column: 4, shadows: ['file billing.toml'] },
    { layer: 'environment', origin: null, value: null, line: null, column: null },
  ]);
  expect((await explain('pool'))[0]).toMatchObject({ line: 5, column: 12 });
  expect((await explain('no.such.key'))[0]).toEqual({ layer: 'file', origin: null, value: null, line: null, column: null });
});

test('a key that moved is explained by its new line, although no value changed', async () => {
  const running = await startServer({ toml: LINES_TOML, files: FILES });
  await running.write('more.json', '\n\n{"billing":\n  {"name":"b"}}');
  const row = async () => (await running.ask('/billing/prod/explain/name')).json().rows[0];
  await eventually(async () => (await row()).line === 4, 'the new line');
  expect((await running.status()).generation).toBe(1);
});

test('without explain_lines no row has a line, and a live edit turns it on and off', async () => {
  const plain = LINES_TOML.replace('explain_lines = true\n', '');
  const running = await startServer({ toml: plain, files: FILES });
  const row = async () => (await running.ask('/billing/prod/explain/name')).json().rows[0];
  const expected = { layer: 'file', origin: 'file more.json', value: '***', shadows: ['file billing.toml'] };
  expect(await row()).toEqual(expected);
  await running.write('server.toml', LINES_TOML);
  await eventually(async () => (await row()).line === 2, 'the line');
  await running.write('server.toml', plain);
  await eventually(async () => (await row()).line === undefined, 'no line');
  expect(await row()).toEqual(expected);
  expect((await running.status()).generation).toBe(1);
});
