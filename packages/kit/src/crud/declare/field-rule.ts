import { InvalidOptions, readOptions } from '../../options/read-options.ts';
import { oneOf } from '../../options/value-rule.ts';
import { Permission } from '../../permissions/permission.ts';

/** Who may see and who may write a column. */
export interface FieldRule {
  readonly visibleTo?: Permission;
  /** What the caller gets instead of a column it may not see: no member, or null. */
  readonly hidden: 'omit' | 'null';
  readonly writableBy?: Permission;
}

/** Shown by the compiler where a field is given a bare permission: it does not say whether to see or to write. No value has this type. */
export interface UseVisibleToOrWritableBy {
  readonly ruleIsMissing: never;
}

/** Shown by the compiler where a function that makes a permission was not called: `isOwner` instead of `isOwner()`. No value has this type. */
export interface CallThePermissionFunction {
  readonly parenthesesAreMissing: never;
}

/**
 * Only callers that the permission admits see the column, and may write it. A permission about the object (`isOwner()`) is decided per
 * row. `hidden: 'null'` shows null instead of leaving the member out, for nullable columns.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, {
 *   owner: 'owner_id',
 *   fields: { margin: visibleTo(isStaff), note: visibleTo(isOwner(), { hidden: 'null' }) },
 * });
 * ```
 */
export function visibleTo(
  permission: Permission | CallThePermissionFunction,
  options: {
    /** What other callers get: no field, or null. Default: `omit`. */
    readonly hidden?: 'omit' | 'null';
  } = {},
): FieldRule {
  requirePermission('visibleTo()', permission);
  readOptions('visibleTo()', options, { hidden: oneOf('omit', 'null') });
  return Object.freeze({ visibleTo: permission, writableBy: permission, hidden: options.hidden ?? 'omit' });
}

/**
 * Everyone who sees the row sees the column; only callers that the permission admits may write it.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, { owner: 'owner_id', fields: { discount: writableBy(isStaff) } });
 * ```
 */
export function writableBy(permission: Permission | CallThePermissionFunction): FieldRule {
  requirePermission('writableBy()', permission);
  return Object.freeze({ writableBy: permission, hidden: 'omit' });
}

/**
 * Whether a resource opens a guarded column: by a rule that says who may write it. A rule about who sees the column, which also holds for writing,
 * does not open it.
 */
export function opensColumn({ fields = {} }: { readonly fields?: object }, name: string): boolean {
  const rule = (fields as Readonly<Record<string, FieldRule | undefined>>)[name];
  return Object.hasOwn(fields, name) && rule?.writableBy !== undefined && rule.writableBy !== rule.visibleTo;
}

/** Without one the column would be open to everybody. */
function requirePermission(place: string, given: unknown): asserts given is Permission {
  if (given instanceof Permission) return;
  const message = `${place}: needs a permission, such as isStaff; it was given ${given === undefined ? 'none' : `a ${typeof given}`}.`;
  throw new InvalidOptions([{ id: 'E022', message, hint: 'A factory must be called: visibleTo(isOwner()).' }]);
}
