import type { AccessWrite } from '../../../crud/declare/row-access.ts';
import type { Db } from '../../../db/engine/db.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { grantErrors } from '../errors.ts';
import { putGrants } from './grant.ts';
import { holdingsOf } from './holdings.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { type ChainLink, encodedKey, keyText, objectChain } from '../declare/object-chain.ts';
import { recordGrants } from '../rows/record-grant.ts';
import { deleteGrantsOn, setDeleted } from '../rows/store.ts';
import { storedActions } from '../declare/stored-actions.ts';
import { SHARE } from './share.ts';
import { userSubject } from '../declare/subject.ts';

type Row = Readonly<Record<string, unknown>>;

const CHANGE = 'change';
/** Longer chains are not followed upwards: far deeper than any depth that counts. */
const ANCESTORS_MAX = 1_000;

/** Grants follow the rows of their objects, in the transaction that writes them. */
export async function followRow(declaration: ObjectActions, asker: KnownAsker, write: AccessWrite): Promise<void> {
  const { db: tx, before, after, caller, requestId } = write;
  const change = { by: caller.principal ?? caller.user, requestId };
  const id = keyText((after ?? before)?.[declaration.key.name]);
  if (after === null) {
    const removed = await deleteGrantsOn(tx, declaration.type, id);
    await recordGrants(
      tx,
      removed.map((row) => ({ before: row, after: null })),
      change,
    );
    return;
  }
  await checkParent(declaration, asker, write, id);
  if (before === null) {
    // Rows that were removed by other means left their grants behind: they are not for the new row of the same id.
    await deleteGrantsOn(tx, declaration.type, id);
    if (declaration.creator === undefined || caller.user === null) return;
    const stored = declaration.sets.has(declaration.creator)
      ? storedActions({ set: declaration.creator })
      : storedActions({ actions: [declaration.creator] });
    const link = linkOf(declaration, after, id);
    const changes = await putGrants(tx, link, [{ subject: userSubject(caller.user.id), stored, expiresAt: null }], change.by);
    await recordGrants(tx, changes, change);
    return;
  }
  const { deletedAt } = declaration;
  if (deletedAt !== undefined && (before[deletedAt] ?? null) !== (after[deletedAt] ?? null))
    await setDeleted(tx, declaration.type, id, (after[deletedAt] as Date | null | undefined) ?? null);
}

function linkOf(declaration: ObjectActions, row: Row, id: string): ChainLink {
  const text = (name: string | undefined) =>
    name === undefined || row[name] === null || row[name] === undefined ? null : keyText(row[name]);
  const { deletedAt } = declaration;
  return {
    declaration,
    id,
    owner: text(declaration.owner),
    tenantKey: text(declaration.tenant) ?? '',
    isDeleted: deletedAt !== undefined && row[deletedAt] !== null && row[deletedAt] !== undefined,
  };
}

/**
 * Putting an object below a parent grants what the parent gives: it takes `share` on the object, as it was before, and the declared
 * `parentAction` on the new parent. What the new parent would give does not count: else a move would grant the right to move.
 */
async function checkParent(
  declaration: ObjectActions,
  asker: KnownAsker,
  { db: tx, before, after }: AccessWrite,
  id: string,
): Promise<void> {
  const { through, parent } = declaration;
  if (through === undefined || parent === undefined || after === null) return;
  const [old, next] = [before?.[through] ?? null, after[through] ?? null];
  if (before === null ? next === null : sameKey(old, next)) return;
  if (parent === declaration && next !== null) await refuseCycle(tx, declaration, id, next);
  if (asker.user?.is_superuser === true && asker.user.is_active) return;
  if (before !== null) {
    const above = old === null ? [] : await objectChain(tx, parent, old, declaration.depth - 1);
    const held = await holdingsOf(tx, declaration, id, asker, [linkOf(declaration, before, id), ...above]);
    const needed = declaration.actions.has(SHARE) ? SHARE : CHANGE;
    if (!held.until.has(needed)) throw cannotMove(declaration, needed);
  }
  const { parentAction } = declaration;
  if (next === null || !parent.actions.has(parentAction)) return;
  const onParent = await holdingsOf(tx, parent, next, asker);
  if (!onParent.until.has(parentAction)) throw cannotMove(parent, parentAction);
}

function cannotMove({ type }: ObjectActions, action: string): Error {
  return grantErrors.cannot_grant({ detail: `This needs "${action}" on ${type}.`, extensions: { actions: [action] } });
}

function sameKey(one: unknown, other: unknown): boolean {
  return one === null || other === null ? one === other : keyText(one) === keyText(other);
}

/** Moves of one model wait for one another: of two that would make a circle together, the second sees the first. */
async function refuseCycle(tx: Db, declaration: ObjectActions, id: string, parent: unknown): Promise<void> {
  if (tx.dialect === 'postgres')
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0)) as locked', [`kit.grants.${declaration.type}`]);
  const [table, key, through] = [declaration.type, declaration.key.name, declaration.through as string].map(quoteName);
  const rows = await tx.query(
    `with recursive above (id, steps) as (
       select ${key}, 1 from ${table} where ${key} = $1
       union all
       select t.${through}, above.steps + 1 from ${table} t join above on t.${key} = above.id where above.steps < ${ANCESTORS_MAX}
     )
     select 1 as found from above where id = $2 limit 1`,
    [encodedKey(declaration, parent), encodedKey(declaration, id)],
  );
  if (rows.length > 0) throw grantErrors.grant_cycle();
}
