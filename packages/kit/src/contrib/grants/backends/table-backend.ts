import { sameId } from '../../../auth/people/same-id.ts';
import { decisionPlan, grantedTo } from '../rows/granted-condition.ts';
import { narrowPage } from '../rows/list-shapes.ts';
import { actionsOfModel, type ObjectActions } from '../declare/object-actions.ts';
import { objectChain } from '../declare/object-chain.ts';
import type { DeclaredObjects, GrantBackend } from '../declare/grant-backend.ts';

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
    const plan = decisionPlan(db.dialect, declaration, asker, action);
    if (plan === undefined) return false;
    plan.values.unshift(encode(row[name]));
    return (await db.query(plan.text, plan.values)).length > 0;
  },
  list: ({ db, declaration, asker }, page) => narrowPage({ db, declaration: declared(declaration), asker }, page),
};

function declared({ model }: Pick<DeclaredObjects, 'model'>): ObjectActions {
  return actionsOfModel(model) as ObjectActions;
}
