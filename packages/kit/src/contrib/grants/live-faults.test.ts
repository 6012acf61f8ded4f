import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { model, t } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { accounts } from '../accounts/index.ts';
import { grants, objectActions, objectGrants } from './index.ts';
import { rulesBackend } from './backends/index.ts';

const ACTIONS = { actions: ['view', 'change', 'delete'] } as const;
const shelves = model('shelves', { id: t.uuidv7().pk(), name: t.text(20) });
const books = model('books', { id: t.uuidv7().pk(), shelf_id: t.ref(() => shelves), title: t.text(20) });
const ruled = model('ruled', { id: t.uuidv7().pk(), title: t.text(20) });
const papers = model('papers', { id: t.uuidv7().pk(), title: t.text(20) });
const shelfActions = objectActions(shelves, ACTIONS);
const bookActions = objectActions(books, { ...ACTIONS, through: 'shelf_id' });
const ruledActions = objectActions(ruled, { ...ACTIONS, backend: rulesBackend({ view: isAuthenticated }) });
const paperActions = objectActions(papers, ACTIONS);

function faults(model: typeof books | typeof ruled | typeof papers): readonly string[] {
  class Objects extends CrudController(
    resource(model, { access: grants(model) }) as never,
    { permission: isAuthenticated, live: true } as never,
  ) {}
  try {
    createApp({
      database: 'sqlite::memory:',
      modules: [accounts(), objectGrants({ objects: [shelfActions, bookActions, ruledActions, paperActions] })],
      mount: { '/v1': { '/objects': Objects } },
      log: { level: 'silent' },
    });
    return [];
  } catch (error) {
    return (error as StartUpError).faults.filter(({ id }) => id === 'E035').map(({ message }) => message);
  }
}

test('a live list whose rows depend on grants on a parent does not start', () => {
  expect(faults(books)).toEqual([expect.stringMatching(/grants\(books\): grants on "shelves" count for its rows \(through "shelf_id"\)/)]);
});

test('a live list whose rows depend on a backend of grants does not start', () => {
  expect(faults(ruled)).toEqual([expect.stringMatching(/grants\(ruled\): the backend ".*" decides/)]);
});

test('a live list by grants on its own rows starts', () => {
  expect(faults(papers)).toEqual([]);
});
