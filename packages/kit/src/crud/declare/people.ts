import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import type { Relation, ToOne } from './relation.ts';

/** A user as relations show them, whatever table the users of the app are in. No table has this name: statements read the users' own. */
export const PEOPLE = model('app_users', { id: t.text().pk(), name: t.text(), is_active: t.bool() });

type PeopleColumns = (typeof PEOPLE)['columns'];

/** Whether a relation leads to users of the app. */
export function isPeople({ model: target }: Pick<Relation, 'model'>): boolean {
  return target() === PEOPLE;
}

/** Who sees a row sees the name of its user. */
const EVERYONE = Object.freeze({ and: [] });

/**
 * The user whose id a column has: `owner: people('owner_id')`. It leads to the users of the app: those of `accounts()`, of better-auth, or of
 * `createApp({ users })`. Its fields are `id`, `name` and `is_active`.
 *
 * @example
 * ```ts
 * const noteResource = resource(notes, { owner: 'owner_id', relations: { owner: people('owner_id') } });
 * class NoteController extends CrudController(noteResource, {
 *   permission: isAuthenticated,
 *   expand: ['owner'],
 *   filters: { 'owner.is_active': ['eq'] },
 *   search: ['title', 'owner.name'],
 * }) {}
 * ```
 */
export function people<const K extends string>(column: K): ToOne<PeopleColumns, K> {
  return Object.freeze({ kind: 'one', model: () => PEOPLE, column, seenWithRow: EVERYONE });
}
