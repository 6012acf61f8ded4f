import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { commands, panel, type PanelFacts } from './panel.ts';

const facts = {
  api: { url: 'http://127.0.0.1:1', key: 'kit_prefix_rest', colleagueId: 'a', groupId: 'b', endpointId: 'c', customer: {} },
  configuration: { url: '', file: join(process.cwd(), 'config/orders.toml'), tokenFile: join(process.cwd(), 'config/token') },
  receiver: { url: '' },
} as PanelFacts;
afterEach(() => vi.unstubAllEnvs());

test('a printed command of kit finds the data of a demo that has its own folder, from where npm start was called', () => {
  vi.stubEnv('INIT_CWD', join(process.cwd(), '..'));
  vi.stubEnv('DATA_FOLDER', undefined);
  const plain = 'npx kit --config examples/orders/kit.config.ts apikey revoke --prefix prefix';
  expect(commands(facts).at(-1)?.command).toBe(plain);
  vi.stubEnv('DATA_FOLDER', '.data/second');
  expect(commands(facts).at(-1)?.command).toBe(`DATA_FOLDER=${join(process.cwd().split('/').at(-1) ?? '', '.data/second')} ${plain}`);
});

test('one printed line connects an AI agent: the endpoint, and the key as its credential', () => {
  const lines = panel({ ...facts, seconds: 1, colour: false })
    .split('\n')
    .filter((line) => line.includes('mcp'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(
    "claude mcp add --transport http orders http://127.0.0.1:1/mcp --header 'Authorization: Bearer kit_prefix_rest'",
  );
});
