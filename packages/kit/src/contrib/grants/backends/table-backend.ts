import { sameId } from '../../../auth/same-id.ts';
import { quoteName } from '../../../db/names.ts';
import { placeSql } from '../../../db/where/where-sql.ts';
import { existsPlan, grantedTo } from '../granted-condition.ts';
import { narrowPage } from '../list-shapes.ts';
import { actionsOfModel, type ObjectActions } from '../object-actions.ts';
import { objectChain } from '../object-chain.ts';
import type { DeclaredObjects, GrantBackend } from './grant-backend.ts';

const texts = new WeakMap<ObjectActions, Map<string, string>>();

/** One statement decides about one row: `$1` is its key. Texts are few: one per action and kind of asker. */
function decisionText(declaration: ObjectActions, condition: string): string {
  let known = texts.get(declaration);
  if (known === undefined) texts.set(declaration, (known = new Map()));
  let text = known.get(condition);
  if (text === undefined) {
    const key = `t0.${quoteName(declaration.key.name)} = $1`;
    const placed = placeSql(condition, 2, (column) => `t0.${quoteName(column)}`);
    text = `select 1 as allowed from ${quoteName(declaration.type)} t0 where ${key} and ${placed}`;
    known.set(condition, text);
  }
  return text;
}

/** The table of grants. */
export const tableBackend: GrantBackend = {
  name: 'table',
  condition: ({ db, declaration, asker }, action) => grantedTo(db.dialect, declared(declaration), asker, action),
  async decide({ db, declaration: { model }, asker }, row, action) {
    const declaration = declared({ model });
    const { user } = asker;
    if (user?.is_active === true && user.is_superuser) return true;
    const { owner } = declaration;
    const { name, encode } = declaration.key;
    if ((user !== null && !user.is_active) || row[name] === undefined || row[name] === null) return false;
    if (owner !== undefined && user !== null && declaration.actions.has(action)) {
      // A row that was read without its owner is asked for it.
      const ownerId = row[owner] === undefined ? (await objectChain(db, declaration, row[name], 0))[0]?.owner : row[owner];
      if (sameId(ownerId, user.id)) return true;
    }
    const plan = existsPlan(db.dialect, declaration, asker, action);
    if (plan === undefined) return false;
    return (await db.query(decisionText(declaration, plan.text), [encode(row[name]), ...plan.values])).length > 0;
  },
  list: ({ db, declaration, asker }, page) => narrowPage({ db, declaration: declared(declaration), asker }, page),
};

function declared({ model }: Pick<DeclaredObjects, 'model'>): ObjectActions {
  return actionsOfModel(model) as ObjectActions;
}
