import { statementsOf } from '../../../db/model-statements.ts';
import { quoteName } from '../../../db/names.ts';
import { compileWhere } from '../../../db/where/compile-where.ts';
import { grantedTo, ownedOrGranted } from '../granted-condition.ts';
import { narrowPage } from '../list-shapes.ts';
import { actionsOfModel, type ObjectActions } from '../object-actions.ts';
import type { DeclaredObjects, GrantBackend } from './grant-backend.ts';

/** The table of grants. */
export const tableBackend: GrantBackend = {
  name: 'table',
  condition: ({ db, declaration, asker }, action) => grantedTo(db.dialect, declared(declaration), asker, action),
  async decide({ db, declaration: { model }, asker }, row, action) {
    const declaration = declared({ model });
    const where = compileWhere(declaration.model, ownedOrGranted(db.dialect, declaration, asker, action));
    if (where.constant !== undefined) return where.constant;
    const { name, encode } = declaration.key;
    if (row[name] === undefined || row[name] === null) return false;
    const parameters: unknown[] = [];
    const key = `t0.${quoteName(name)} = $${parameters.push(encode(row[name]))}`;
    const { table } = statementsOf(declaration.model);
    const text = `select 1 as allowed from ${table} t0 where ${key} and ${where.append(db.dialect, 't0', parameters)}`;
    return (await db.query(text, parameters)).length > 0;
  },
  list: ({ db, declaration, asker }, page) => narrowPage({ db, declaration: declared(declaration), asker }, page),
};

function declared({ model }: Pick<DeclaredObjects, 'model'>): ObjectActions {
  return actionsOfModel(model) as ObjectActions;
}
