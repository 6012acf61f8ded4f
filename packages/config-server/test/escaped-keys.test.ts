import { expect, test } from 'vitest';
import { parseDocument } from '../src/client/document.ts';
import { coerce } from '../src/document/environment.ts';
import { parseFile } from '../src/document/formats.ts';
import { checkSchema } from '../src/document/schema-gate.ts';
import { emptyTable } from '../src/document/value.ts';
import { applicationTypes } from '../src/schema-types/application-types.ts';
import { parseOrdered } from '../src/secrets/ordered-tree.ts';
import { SERVER_TOML, startServer } from './running-server.ts';

// JSON.parse takes the key from an object it read before: the first text has a backslash where the second has a line break.
const BEFORE = String.raw`{"first":1,"\\":2}`;
const AFTER = String.raw`{"first":1,"\n":3}`;
const KEYS = ['first', '\n'];

const readers: Record<string, (text: string) => readonly string[]> = {
  'a file': (text) => Object.keys(parseFile('x.json', Buffer.from(text), 'file x.json')),
  'a file with an integer beyond 2^53': (text) =>
    Object.keys(parseFile('x.json', Buffer.from(text.replace('1', '12345678901234567890')), 'file x.json')),
  'a variable of the environment': (text) => Object.keys(coerce(text) as object),
  'a SOPS document': (text) => [...parseOrdered('x.json', text).keys()],
  'a document in the client': (text) => Object.keys(parseDocument(Buffer.from(text))),
  'a JSON Schema': (text) => {
    const table = Object.assign(emptyTable(), { first: 1, '\\': 2, '\n': 3 });
    try {
      checkSchema(table, Buffer.from(`{"type":"object","properties":${text.replaceAll(/:\d/g, ':false')}}`), 'schema');
    } catch (error) {
      return [...(error as Error).message.matchAll(/(first|\n|\\\\) fails "false"/g)].map(([, key = '']) => key);
    }
    return [];
  },
  'generated types': (text) => {
    const schema = `{"type":"object","properties":${text.replaceAll(/\d/g, '{}')}}`;
    const [, file] = applicationTypes([{ application: 'x', document: emptyTable(), schema }]);
    return [...file!.text.matchAll(/^ {4}"(.+)": \{\}/gm)].map(([, key = '']) => key.replace(String.raw`\n`, '\n'));
  },
};

for (const [name, keysOf] of Object.entries(readers)) {
  test(`an escaped key keeps its name after another object had a key with a backslash: ${name}`, () => {
    keysOf(BEFORE);
    expect(keysOf(AFTER)).toEqual(KEYS);
  });
}

test('a section is served with its own keys after another section had a key with a backslash', async () => {
  const toml = SERVER_TOML.replace('billing.toml', 'billing.json').replace('orders.yaml', 'orders.json');
  const running = await startServer({ toml, files: { 'orders.json': `{"orders":${BEFORE}}`, 'billing.json': `{"billing":${BEFORE}}` } });
  await running.write('billing.json', `{"billing":${AFTER}}`);
  await running.server.reload();
  expect((await running.ask('/billing/prod')).text).toBe(AFTER);
});
