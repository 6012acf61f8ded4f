import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { model, t } from '../../db/index.ts';
import { toolkitTables } from './toolkit-tables.ts';

const contrib = join(import.meta.dirname, '../../contrib');
const withTables = readdirSync(contrib).filter((folder) => existsSync(join(contrib, folder, 'models.ts')));

test.each(withTables)('the tables of contrib/%s are those of the toolkit, under the name of its module', (folder) => {
  // The first member of what the factory returns.
  const name = /return \{\n\s+name: '(\w+)',$/m.exec(readFileSync(join(contrib, folder, 'module.ts'), 'utf8'))?.[1];
  const [own, other] = [model('own_rows', { id: t.uuidv7().pk() }), model('app_rows', { id: t.uuidv7().pk() })];
  const modules = [
    { name: name ?? folder, models: [own] },
    { name: 'shop', models: [other] },
  ];
  expect([...toolkitTables({ modules })]).toEqual(['own_rows']);
});
