import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { commands } from './panel.ts';

const root = join(import.meta.dirname, '..', '..', '..');

test('the tour shows the commands that npm start prints, in their order', () => {
  const page = readFileSync(join(root, 'docs/tour.md'), 'utf8');
  const shown = [...page.matchAll(/^```sh tour\n(.*)\n```$/gm)].map(([, command]) => command);
  vi.stubEnv('INIT_CWD', root);
  const printed = commands({
    api: {
      url: 'http://127.0.0.1:3000',
      portReason: '',
      metricsUrl: '',
      key: 'kit_PREFIX_SECRET',
      endpointId: 'ENDPOINT',
      colleagueId: 'COLLEAGUE',
      groupId: 'GROUP',
      username: '',
      password: '',
      customer: { username: '', password: '' },
      stop: () => Promise.resolve(),
    },
    configuration: {
      url: 'http://127.0.0.1:8888',
      token: '',
      file: join(root, 'examples/orders/.data/config/orders.toml'),
      tokenFile: join(root, 'examples/orders/.data/config/token'),
      stop: () => Promise.resolve(),
    },
    receiver: { url: 'http://127.0.0.1:9000/', trust: () => undefined, stop: () => Promise.resolve() },
    seconds: 0,
    colour: false,
  });
  vi.unstubAllEnvs();
  expect(shown).toEqual(printed.map(({ command }) => command));
});
