import type { AdminContext } from '../../../app/admin/declaration.ts';
import type { AdminSection, AdminSectionRemoves } from '../../../app/admin/sections.ts';
import type { AdminColumn, AdminField, AdminLink } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { compileWhere } from '../../../db/sql/where/compile-where.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { askerFor, askerOf, type StaffCaller } from '../caller/staff-asker.ts';
import { ownedOrGranted } from '../rows/granted-condition.ts';
import { grantsState } from '../declare/grants-state.ts';
import { allPaths, describePath } from '../grant/holdings.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { encodedKey, keyText } from '../declare/object-chain.ts';
import { sharedBy } from '../grant/share.ts';
import { type GrantRow, listGrants } from '../rows/store.ts';
import { namesOf } from '../caller/subject-names.ts';
import { shownActions } from '../declare/stored-actions.ts';
import { parseSubject, userSubject } from '../declare/subject.ts';

const SHOWN_MAX = 200;

const removes: AdminSectionRemoves = {
  resource: 'grants',
  singular: 'grant',
  label: 'Revoke',
  removal: 'They lose this access with the next request.',
};

/** Who gets a grant: one of the three. */
export const subjectFields: readonly AdminField[] = [
  { name: 'user', label: 'User', kind: 'reference', of: 'user', nullable: true },
  { name: 'group', label: 'Group', kind: 'reference', of: 'group', nullable: true, help: 'Instead of a user.' },
  {
    name: 'everyone',
    label: 'Everyone',
    kind: 'select',
    nullable: true,
    choices: [
      { value: 'tenant', label: 'Everyone in the tenant' },
      { value: 'authenticated', label: 'Everyone who is logged in' },
      { value: 'public', label: 'Everyone, also without a login' },
    ],
    help: 'Instead of a user or a group, if this type of object allows it.',
  },
];

export const expiryField: AdminField = {
  name: 'expires_at',
  label: 'Expires',
  kind: 'time',
  nullable: true,
  help: 'Leave empty for no expiry.',
};

async function staffCaller({ principal: { user }, tenant }: AdminContext): Promise<StaffCaller> {
  return { user, tenant: await tenant() };
}

/** Everybody with access to an object, and why; with buttons for callers who hold `share`. */
export async function whoHasAccess(context: AdminContext, declaration: ObjectActions, id: string): Promise<AdminSection> {
  const { db, linkTo } = context;
  const paths = await allPaths(db, declaration, id);
  const names = await namesOf(
    db,
    paths.map(({ subject }) => subject),
  );
  const mayShare = (await sharedBy(db, declaration, id, await askerFor(db, await staffCaller(context), declaration, id))) !== undefined;
  const columns: readonly AdminColumn[] = [
    { name: 'who', label: 'Who', kind: 'link' },
    { name: 'may', label: 'Access', kind: 'chips' },
    { name: 'why', label: 'Why', kind: 'text' },
    { name: 'until', label: 'Expires', kind: 'time' },
  ];
  return {
    kind: 'table',
    title: 'Who has access, and why',
    columns,
    rows: paths.slice(0, SHOWN_MAX).map((path, index) => ({
      id: path.grantId ?? `${path.subject}-${index}`,
      title: names.get(path.subject) ?? path.subject,
      values: {
        who: subjectLink(path.subject, names.get(path.subject) ?? null, linkTo),
        may: path.actions,
        why: describePath(path, names, 'this record'),
        until: path.expiresAt?.toISOString() ?? null,
      },
      // What a parent gives is revoked on the parent.
      removable: mayShare && path.grantId !== null && !path.isInherited,
    })),
    empty: 'Superusers only.',
    more: { resource: 'grants', filters: { type: declaration.type, object: id } },
    ...(mayShare ? { adds: grantForm(declaration, id), removes } : {}),
  };
}

function grantForm({ type, sets, actions }: ObjectActions, id: string) {
  const choices = [...sets].map(([value, given]) => ({ value, label: `${value} (${[...given].join(', ')})` }));
  const set: AdminField = { name: 'set', label: 'Set', kind: 'select', nullable: true, choices };
  const single: AdminField = {
    name: 'actions',
    label: 'Actions',
    kind: 'strings',
    nullable: true,
    suggestions: [...actions],
    help: `Single actions, where no set fits: ${[...actions].join(', ')}.`,
  };
  const fields = [...subjectFields, ...(choices.length === 0 ? [] : [set]), single, expiryField];
  return { resource: 'grants', label: 'Grant access', fields, values: { type, object: id } };
}

export function objectOf({ object_type, object_id }: GrantRow): string {
  return `${object_type}/${object_id}`;
}

/** What the objects are called today: one question per type. */
export async function objectNames({ titlesOf }: AdminContext, rows: readonly GrantRow[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const [type, some] of Map.groupBy(rows, ({ object_type }) => object_type)) {
    const ids = some.map(({ object_id }) => object_id);
    for (const [id, title] of await titlesOf(type, ids)) names.set(`${type}/${id}`, title);
  }
  return names;
}

const granted: readonly AdminColumn[] = [
  { name: 'object', label: 'Object', kind: 'link' },
  { name: 'actions', label: 'May', kind: 'chips' },
  { name: 'through', label: 'Through', kind: 'text' },
  { name: 'granted_by', label: 'Granted by', kind: 'text', secondary: true },
  { name: 'expires_at', label: 'Until', kind: 'time', secondary: true },
];

/** What a user or a group was granted; of a user also what its groups were. */
export async function hasAccessTo(context: AdminContext, kind: 'user' | 'group', id: string): Promise<AdminSection> {
  const { db, linkTo, principal } = context;
  const subject = kind === 'user' ? userSubject(id) : `group:${id}`;
  const groups = kind === 'user' ? await allGroupsOf(db, id) : [];
  const subjects = [subject, ...groups.map((group) => `group:${group}`)];
  const rows = await visibleGrants(context, await listGrants(db, { subjects }, null, SHOWN_MAX));
  const names = await namesOf(
    db,
    rows.flatMap((row) => [row.subject, ...(row.granted_by === null ? [] : [userSubject(row.granted_by)])]),
  );
  const objects = await objectNames(context, rows);
  return {
    kind: 'table',
    title: 'Has access to',
    columns: granted,
    rows: rows.map((row) => {
      const { set, actions } = shownActions(row.actions);
      const name = objects.get(objectOf(row));
      const object = name === undefined ? objectOf(row) : `${row.object_type}/${name}`;
      return {
        id: row.id,
        title: object,
        values: {
          object: linkTo(row.object_type, row.object_id, object) ?? object,
          actions: set === null ? (actions ?? []) : [set],
          through: row.subject === subject ? 'directly' : `the group ${names.get(row.subject) ?? row.subject}`,
          granted_by: row.granted_by === null ? null : (names.get(userSubject(row.granted_by)) ?? row.granted_by),
          expires_at: row.expires_at?.toISOString() ?? null,
        },
        removable: principal.user.is_superuser && row.subject === subject,
      };
    }),
    empty: kind === 'user' ? 'Nothing was granted to this user or its groups.' : 'Nothing was granted to this group.',
    more: { resource: 'grants', filters: { subject } },
    removes,
  };
}

async function allGroupsOf(db: Db, userId: string): Promise<readonly string[]> {
  const { groups } = grantsState.of(db);
  return (await (groups?.allGroupsOf?.(db, userId) ?? groups?.groupsOf(db, userId, null))) ?? [];
}

/**
 * The grants that the staff member may know of: those on objects they may view, and those they gave or got themselves. A list of all would name
 * objects that they cannot see.
 */
async function visibleGrants(context: AdminContext, rows: readonly GrantRow[]): Promise<readonly GrantRow[]> {
  const { db, principal } = context;
  if (principal.user.is_superuser) return rows;
  const asker = await askerOf(db, await staffCaller(context));
  const visible = new Set<string>();
  for (const type of new Set(rows.map(({ object_type }) => object_type))) {
    const declaration = grantsState.of(db).objects.get(type);
    if (declaration === undefined) continue;
    const ids = rows.filter(({ object_type }) => object_type === type).map(({ object_id }) => object_id);
    for (const id of await visibleIds(db, declaration, asker, ids)) visible.add(`${type}/${id}`);
  }
  return rows.filter(
    ({ object_type, object_id, granted_by, subject }) =>
      visible.has(`${object_type}/${object_id}`) || granted_by === principal.user.id || subject === userSubject(principal.user.id),
  );
}

async function visibleIds(db: Db, declaration: ObjectActions, asker: KnownAsker, ids: readonly string[]): Promise<string[]> {
  const keys = [...new Set(ids)].map((id) => encodedKey(declaration, id)).filter((key) => key !== undefined);
  const where = compileWhere(declaration.model, await ownedOrGranted(db.dialect, declaration, asker, 'view'));
  if (keys.length === 0 || where.constant === false) return [];
  const parameters: unknown[] = [];
  const key = `t0.${quoteName(declaration.key.name)}`;
  const terms = [`${key} in (${keys.map((each) => `$${parameters.push(each)}`).join(', ')})`];
  if (where.constant === undefined) terms.push(where.append(db.dialect, 't0', parameters));
  const found = await db.query<{ id: unknown }>(
    `select ${key} as id from ${quoteName(declaration.type)} t0 where ${terms.join(' and ')}`,
    parameters,
    { replanned: true },
  );
  return found.map(({ id }) => keyText(id));
}

function subjectLink(subject: string, name: string | null, linkTo: AdminContext['linkTo']): AdminLink | string {
  const parsed = parseSubject(subject);
  const link = parsed?.id === undefined ? null : linkTo(parsed.kind, parsed.id, name ?? subject);
  return link ?? name ?? subject;
}
