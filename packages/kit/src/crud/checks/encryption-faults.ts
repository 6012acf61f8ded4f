import type { Fault } from '../../options/fault.ts';
import { surelyAdmitsAnonymous } from '../../permissions/admits-anonymous.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { orderTerm } from '../options/ordering.ts';
import { fieldOf } from '../options/operation-field.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';

/** E037: what a resource asks of an encrypted column that a ciphertext cannot do, or must not reveal. */
export function encryptedColumnFaults(policy: Policy, place: string): Fault[] {
  const { statements, options } = policy;
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E037', message: `${place}: ${message}`, hint });
  for (const { name } of statements.encrypted) {
    const rule = policy.ruleOf(name)?.visibleTo;
    if (rule !== undefined && surelyAdmitsAnonymous(rule, 'GET'))
      add(`fields.${name} shows an encrypted column to everyone: ${rule.name}.`, 'Use a permission: visibleTo(isStaff).');
    const roles = { tenant: policy.tenant?.column, owner: policy.owner?.column, state: options.state, version: options.version };
    for (const [role, column] of Object.entries(roles))
      if (column === name) add(`the ${role} column "${name}" is encrypted.`, 'Use a column that is not.');
  }
  for (const [field, { requires }] of Object.entries(policy.computed))
    for (const path of requires)
      if (isEncrypted(policy, path))
        add(
          `"${field}" requires "${path}", which is encrypted.`,
          'Show the column itself: fields: { … visibleTo(permission) }; or use reveal() in code.',
        );
  for (const relation of Object.keys(policy.resource.relations as object)) {
    const edge = policy.edge(relation);
    for (const { column } of (edge?.order ?? []).map(orderTerm))
      if (edge?.target.statements.byName.get(column)?.settings.encrypted !== undefined)
        add(`the relation "${relation}" is ordered by "${column}", which is encrypted.`, 'A ciphertext has no order.');
  }
  return faults;
}

/** E037 of a mounted controller: its lists, statistics, files and the URLs of its rows. */
export function encryptedOperationFaults(place: string, controller: object, { policy, options, list }: MountedResource): Fault[] {
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E037', message: `${place}: ${message}`, hint });
  const { by = [], default: usual = [] } = (options.ordering ?? {}) as Readonly<Record<string, readonly string[] | undefined>>;
  const ordered = new Set([...by, ...usual].map((each) => orderTerm(each).column));
  for (const column of ordered)
    if (isEncrypted(policy, column)) add(`ordering has "${column}", which is encrypted.`, 'A ciphertext has no order.');
  for (const column of list.search?.columns ?? [])
    if (isEncrypted(policy, column))
      add(`search uses "${column}", which is encrypted.`, "Use filters: { … ['eq'] } with .encrypted({ search: 'equality' }).");
  for (const column of options.stats?.by ?? [])
    if (isEncrypted(policy, column))
      add(`stats.by has "${column}", which is encrypted.`, 'Every ciphertext is different: there are no groups.');
  for (const [metric, { column }] of Object.entries(options.stats?.metrics ?? {}))
    if (column !== null && isEncrypted(policy, column))
      add(`the metric "${metric}" measures "${column}", which is encrypted.`, 'Remove the metric.');
  if (options.import?.by !== undefined && isEncrypted(policy, options.import.by))
    add(`import.by has "${options.import.by}", which is encrypted.`, 'Find rows by a column that is not encrypted.');
  if (options.lookup !== undefined && isEncrypted(policy, options.lookup))
    add(`the lookup column "${options.lookup}" is encrypted.`, 'URLs are logged on their way: find the row with a QUERY request.');
  for (const path of Object.keys(options.filters ?? {})) faults.push(...filterFaults(place, policy, path));
  const shown = widestView(policy)
    .shownColumns()
    .filter(({ settings }) => settings.encrypted !== undefined);
  const operation = options.operations?.['export'];
  const hasPermission = typeof operation === 'object' && operation.permission !== undefined;
  if (shown.length > 0 && fieldOf(options, 'export') in controller && !hasPermission)
    add(
      `export has no permission of its own, and files would contain ${shown.map(({ name }) => `"${name}"`).join(', ')} in plaintext.`,
      'Say who can export: operations: { export: { permission: … } }.',
    );
  return faults;
}

function filterFaults(place: string, policy: Policy, path: string): Fault[] {
  const column = columnAt(policy, path);
  const tenant = column?.column.settings.encrypted?.tenant;
  if (tenant === undefined || (column?.holder === policy && policy.bounds.tenant === tenant)) return [];
  return [
    {
      id: 'E037',
      message: `${place}: the filter "${path}" needs the tenant "${tenant}", and callers of this controller are not bound to one.`,
      hint: `Use a filter of the resource itself with tenant: '${tenant}', or declare .encrypted() without tenant.`,
    },
  ];
}

function columnAt(policy: Policy, path: string) {
  const [first = '', second] = path.split('.');
  const holder = second === undefined ? policy : policy.edge(first)?.target;
  const column = holder?.statements.byName.get(second ?? first);
  return holder === undefined || column === undefined ? undefined : { holder, column };
}

function isEncrypted(policy: Policy, path: string): boolean {
  return columnAt(policy, path)?.column.settings.encrypted !== undefined;
}
