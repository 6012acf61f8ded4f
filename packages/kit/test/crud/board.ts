import { CrudController, many, one, resource, type Change } from '../../src/crud/index.ts';
import {
  createTable,
  type Db,
  migration,
  model,
  softDelete,
  softDeleteUnique,
  t,
  timestamps,
  userStamps,
  versioned,
} from '../../src/db/index.ts';
import type { AuditEntry } from '../../src/auth/request/audit-sink.ts';
import type { EventEntry } from '../../src/app/declare/registry.ts';
import type { Module } from '../../src/app/declare/module.ts';
import { isAuthenticated, isStaff } from '../../src/permissions/index.ts';
import type { TestAppOptions } from '../../src/testing/test-app.ts';
import { startShop, type ShopApp } from './shop.ts';

/** Boards have cards, cards have comments; all of them are deleted softly. Owners see their boards, and what is below them. */
const boardIndexes = [softDeleteUnique('owner_id', 'slug')];
export const boards = model(
  'boards',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly(),
    title: t.text({ min: 1, max: 80 }),
    slug: t.text(40).nullable(),
    color: t.text(20).dbDefault('white'),
    ...timestamps(),
    ...userStamps(),
    ...versioned(),
    ...softDelete({ by: true }),
  },
  { indexes: boardIndexes },
);
export const cards = model('cards', {
  id: t.uuidv7().pk(),
  board_id: t.ref(() => boards),
  title: t.text({ min: 1, max: 80 }),
  points: t.int({ min: 0 }).dbDefault(0),
  done: t.bool().dbDefault(false),
  ...timestamps(),
  ...userStamps(),
  ...versioned(),
  ...softDelete(),
});
export const comments = model('comments', { id: t.uuidv7().pk(), card_id: t.ref(() => cards), text: t.text(200), ...softDelete() });

/** What was told about changes, newest last. */
export const told: { changes: Change[]; audited: AuditEntry[]; published: EventEntry[] } = { changes: [], audited: [], published: [] };
const onChange = (change: unknown) => void told.changes.push(change as Change);

export const boardResource = resource(boards, {
  owner: 'owner_id',
  version: 'version',
  softDelete: { cascade: ['cards'] },
  relations: { cards: many(() => cards, 'board_id', { order: ['title'], limit: 100 }) },
  events: true,
  onChange,
});
export const cardResource = resource(cards, {
  rows: () => ({ board: { is: {} } }),
  version: 'version',
  softDelete: { cascade: ['comments'] },
  relations: { board: one(() => boards, 'board_id'), comments: many(() => comments, 'card_id', { limit: 100 }) },
  onChange,
});
export const commentResource = resource(comments, {
  rows: () => ({ card: { is: {} } }),
  relations: { card: one(() => cards, 'card_id') },
  onChange,
});

export class BoardController extends CrudController(boardResource, {
  permission: isAuthenticated,
  etag: 'required',
  expand: ['cards'],
  restore: true,
}) {}
export class CardController extends CrudController(cardResource, {
  permission: isAuthenticated,
  filters: { 'board.title': ['eq'], points: ['eq', 'gte'] },
  expand: ['board', 'comments'],
  restore: true,
  operations: { restore: { permission: isAuthenticated.and(isStaff.not()) } },
}) {}
/** Cards below the board in the URL. */
export class BoardCardController extends CrudController(cardResource, {
  permission: isAuthenticated,
  parent: { relation: 'board' },
  bulk: { create: true },
  import: { formats: ['jsonl'] },
}) {}
export class CommentController extends CrudController(commentResource, { permission: isAuthenticated }) {}

const tables = migration('0001_initial', [
  createTable('boards', boards.columns, { indexes: boardIndexes }),
  createTable('cards', { ...cards.columns, board_id: t.ref('boards') }),
  createTable('comments', { ...comments.columns, card_id: t.ref('cards') }),
]);

export const board: Module = {
  name: 'board',
  models: [boards, cards, comments],
  migrations: [tables],
  provides: () => ({
    audit: { record: async (tx: Db, entries: readonly AuditEntry[]) => void (await tx.query('select 1'), told.audited.push(...entries)) },
    events: { publish: async (tx: Db, events: readonly EventEntry[]) => void (await tx.query('select 1'), told.published.push(...events)) },
  }),
};

/** `/v1/boards`, `/v1/cards`, `/v1/comments`, with the people of the shop. */
export function startBoard(options: Partial<TestAppOptions> = {}): Promise<ShopApp> {
  return startShop({
    mount: {
      '/v1': {
        '/boards': BoardController,
        '/boards/:board_id/cards': BoardCardController,
        '/cards': CardController,
        '/comments': CommentController,
      },
    },
    modules: [board],
    ...options,
  });
}
