import type { Db } from '../../../db/engine/db.ts';
import { quoteName } from '../../../db/declare/names.ts';
import { identityValue } from '../../../db/sql/identity-value.ts';
import { statementsOf } from '../../../db/sql/model-statements.ts';
import type { ObjectActions } from './object-actions.ts';

/** An object, or one of its parents, with what decides about it. */
export interface ChainLink {
  readonly declaration: ObjectActions;
  /** As `grants.object_id` has it. */
  readonly id: string;
  readonly owner: string | null;
  readonly tenantKey: string;
  readonly isDeleted: boolean;
}

/** The object and its parents, nearest first, in one statement. Empty when there is no such object. */
export async function objectChain(
  db: Db,
  declaration: ObjectActions,
  id: unknown,
  depth = declaration.depth,
): Promise<readonly ChainLink[]> {
  const key = encodedKey(declaration, id);
  if (key === undefined) return [];
  const levels = levelsOf(declaration, depth);
  const columns = levels.flatMap((each, index) => linkColumns(each, index));
  const joins = levels
    .slice(1)
    .map(
      (each, index) =>
        ` left join ${quoteName(each.type)} t${index + 1} on t${index + 1}.${quoteName(each.key.name)} = t${index}.${quoteName((levels[index] as ObjectActions).through as string)}`,
    );
  const [row] = await db.query<Record<string, unknown>>(
    `select ${columns.join(', ')} from ${quoteName(declaration.type)} t0${joins.join('')} where t0.${quoteName(declaration.key.name)} = $1`,
    [key],
  );
  if (row === undefined) return [];
  const links: ChainLink[] = [];
  for (const [index, each] of levels.entries()) {
    if (row[`id${index}`] === null || row[`id${index}`] === undefined) break;
    links.push({
      declaration: each,
      id: keyText(row[`id${index}`]),
      owner: idText(row[`owner${index}`]),
      tenantKey: idText(row[`tenant${index}`]) ?? '',
      isDeleted: row[`deleted${index}`] !== null && row[`deleted${index}`] !== undefined,
    });
  }
  return links;
}

/** The declarations from an object upwards, as deep as it counts. */
export function levelsOf(declaration: ObjectActions, depth: number): ObjectActions[] {
  const levels = [declaration];
  for (let at = declaration.parent; at !== undefined && levels.length <= depth; at = at.parent) levels.push(at);
  return levels;
}

function linkColumns({ key, owner, tenant, deletedAt }: ObjectActions, index: number): string[] {
  const column = (name: string | undefined, as: string) =>
    `${name === undefined ? 'null' : `t${index}.${quoteName(name)}`} as ${as}${index}`;
  return [column(key.name, 'id'), column(owner, 'owner'), column(tenant, 'tenant'), column(deletedAt, 'deleted')];
}

/** A key as the database takes it; undefined when the column cannot hold it. */
export function encodedKey({ model, key }: ObjectActions, id: unknown): unknown {
  try {
    const value = typeof id === 'string' ? identityValue(statementsOf(model).column(key.name), id) : id;
    return value === undefined ? undefined : key.encode(value);
  } catch {
    return undefined;
  }
}

/** A key as `grants.object_id` has it. */
export function keyText(id: unknown): string {
  return typeof id === 'string' ? id : String(id);
}

function idText(id: unknown): string | null {
  return id === null || id === undefined ? null : keyText(id);
}
