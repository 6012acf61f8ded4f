import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import type { RowOf } from '../../db/declare/rows.ts';
import { screen } from '../../screens/screen.ts';
import { expiryField, hasAccessTo, objectNames, objectOf, subjectFields, whoHasAccess } from './serve/admin-sections.ts';
import { namesOf } from './caller/subject-names.ts';
import { grantsState } from './declare/grants-state.ts';
import type { grantModel } from './models.ts';
import type { ObjectActions } from './declare/object-actions.ts';
import { shownActions } from './declare/stored-actions.ts';
import { subjectText, userSubject } from './declare/subject.ts';
import { grantResource } from './serve/grant-resource.ts';

type GrantRow = RowOf<typeof grantModel.columns>;

/** What the names of a grant's user, group and object are today. */
interface Names {
  readonly who: string;
  readonly granter: string | null;
  readonly objectText: string;
}

const creation: readonly AdminField[] = [
  ...subjectFields,
  { name: 'type', label: 'Type', kind: 'text', required: true, help: 'Table of the object.' },
  { name: 'object', label: 'Object id', kind: 'text', required: true },
  { name: 'set', label: 'Set', kind: 'text', nullable: true, help: 'A named set of actions of this type, such as `viewer`.' },
  { name: 'actions', label: 'Actions', kind: 'strings', nullable: true, help: 'Single actions, if no set fits.' },
  expiryField,
];

const grantScreen = screen(grantResource, {
  label: 'Grants',
  singular: 'grant',
  group: 'Access',
  icon: 'shield',
  description: 'Access of users and groups to single objects. You can only grant or revoke actions that you have.',
  title: 'title',
  columns: [
    { name: 'subject', label: 'Who', sortNote: 'Cannot be sorted: the names are in other tables. Use the filter.' },
    { name: 'object', kind: 'link' },
    { name: 'actions', label: 'Access', kind: 'chips', sortNote: 'Cannot be sorted: a grant has a set, or several actions.' },
    { name: 'granted_by', secondary: true },
    { name: 'expires_at', label: 'Expires', secondary: true },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
  facts: [{ name: 'subject_id', label: 'Subject', kind: 'code' }, 'id'],
  load: (rows, context) => namesOfPage(rows as readonly GrantRow[], context),
  cells: {
    title: (row) => ('who' in row ? titleOf(row as Names) : 'Grant'),
    subject: (row) => (row as GrantRow & Names).who,
    object: (row, { linkTo }) => {
      const { object_type: type, object_id: id, objectText } = row as GrantRow & Names;
      return linkTo(type, id, objectText) ?? objectText;
    },
    actions: ({ actions: stored }) => {
      const { set, actions } = shownActions(stored);
      return set === null ? (actions ?? []) : [set];
    },
    granted_by: (row) => (row as GrantRow & Names).granter,
  },
  values: ({ subject }) => ({ subject_id: subject }),
  filters: [
    { name: 'user', label: 'User', kind: 'reference', of: 'user', isIndexed: true, where: (id) => ofSubject(userSubject(id)) },
    {
      name: 'group',
      label: 'Group',
      kind: 'reference',
      of: 'group',
      isIndexed: true,
      where: (id) => ofSubject(subjectText({ kind: 'group', id })),
    },
    {
      name: 'tenant',
      label: 'Tenant',
      kind: 'reference',
      of: 'tenant',
      isIndexed: true,
      where: (id) => ({ tenant_key: { eq: id, ne: '' }, object_deleted_at: null }),
    },
    { name: 'subject', label: 'Who, as tenant or user:<id>', kind: 'text', isIndexed: true, where: ofSubject },
    { column: 'object_type', name: 'type', label: 'Type', operators: ['is'] },
    { column: 'object_id', name: 'object', label: 'Object id', operators: ['is'] },
    {
      name: 'record',
      label: 'Record, such as order:<id>',
      kind: 'text',
      isIndexed: true,
      where: (key) => {
        const at = key.indexOf(':');
        return { object_type: key.slice(0, Math.max(0, at)), object_id: key.slice(at + 1) };
      },
    },
  ],
  related: [
    { to: '*', filter: 'record' },
    { to: 'tenant', filter: 'tenant', column: 'tenant_key' },
  ],
  search: [],
  suggestions: ({ db }) => {
    // Another backend decides without stored grants.
    const types = [...grantsState.of(db).objects.values()].filter(({ backend }) => backend === undefined);
    return Promise.resolve({
      type: types.map(({ type }) => type),
      set: [...new Set(types.flatMap(({ sets }) => Array.from(sets.keys())))],
      actions: [...new Set(types.flatMap(({ actions }) => Array.from(actions)))],
    });
  },
  forms: { create: creation, edit: [], values: () => ({}), input: (fields) => fields },
  removal: 'They lose this access with the next request.',
  exports: false,
});

/** Grants in the admin site: a list of them, and a section on the pages of objects, users and groups. */
export function grantsAdmin(objects: () => ReadonlyMap<string, ObjectActions>): AdminDeclaration {
  return {
    resources: [grantScreen],
    sections: async (context, target) => {
      const declaration = objects().get(target.type);
      // Another backend decides without stored grants: there is nothing to show.
      if (declaration !== undefined) return declaration.backend === undefined ? [await whoHasAccess(context, declaration, target.id)] : [];
      if (target.type === 'user' || target.type === 'group') return [await hasAccessTo(context, target.type, target.id)];
      return [];
    },
  };
}

/** The index of subjects has no grants on deleted objects. */
function ofSubject(subject: string) {
  return { subject, object_deleted_at: null };
}

function titleOf({ who, objectText }: Names): string {
  return `${who} on ${objectText}`;
}

async function namesOfPage(rows: readonly GrantRow[], context: AdminContext): Promise<readonly Names[]> {
  const subjects = rows.flatMap(({ subject, granted_by: by }) => [subject, ...(by === null ? [] : [userSubject(by)])]);
  const names = await namesOf(context.db, subjects);
  const objects = await objectNames(context, rows);
  return rows.map((row) => {
    const { subject, granted_by: granter, object_type: type } = row;
    const name = objects.get(objectOf(row));
    return {
      who: names.get(subject) ?? subject,
      granter: granter === null ? null : (names.get(userSubject(granter)) ?? granter),
      objectText: name === undefined ? objectOf(row) : `${type}/${name}`,
    };
  });
}
