import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import { AdminConditions } from '../../app/admin/list.ts';
import { modelList } from '../../app/admin/model-list.ts';
import { boundOrder, newestRows } from '../../app/admin/search-rows.ts';
import type { AdminRow } from '../../app/admin/shapes.ts';
import { isUuid } from '../../db/values/uuid.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { FaultCollector } from '../../errors/fault-collector.ts';
import { isKitError } from '../../errors/kit-error.ts';
import {
  adminAsker,
  adminAskerOf,
  expiryField,
  hasAccessTo,
  objectNames,
  objectOf,
  subjectFields,
  visibleGrants,
  whoHasAccess,
} from './serve/admin-sections.ts';
import { findSubject } from './caller/find-subject.ts';
import { checkTerms } from './grant/grant.ts';
import { grantsState } from './declare/grants-state.ts';
import { grantModel } from './models.ts';
import type { ObjectActions } from './declare/object-actions.ts';
import { lockToShare, type SharedObject, shareObject, sharedBy, unshareObject } from './grant/share.ts';
import { findGrant, findGrants, type GrantRow } from './rows/store.ts';
import { namesOf } from './caller/subject-names.ts';
import { shownActions } from './declare/stored-actions.ts';
import { subjectText, userSubject } from './declare/subject.ts';

const list = modelList(grantModel, 'g', {
  columns: [
    { name: 'subject', label: 'Who', sortNote: 'Cannot be sorted: the names are in other tables. Use the filter.' },
    { name: 'object', kind: 'link' },
    { name: 'actions', label: 'May', kind: 'chips' },
    { name: 'granted_by', secondary: true },
    { name: 'expires_at', label: 'Until', secondary: true },
    { name: 'created_at', label: 'Since', sortable: true, secondary: true },
  ],
  orders: { subject: null, object: 'object_type', actions: null },
});

/** Grants in the admin site: a list of them, and a section on the pages of objects, users and groups. */
export function grantsAdmin(objects: () => ReadonlyMap<string, ObjectActions>): AdminDeclaration {
  return {
    resources: [grantsResource(objects)],
    sections: async (context, target) => {
      const declaration = objects().get(target.type);
      // Another backend decides without stored grants: there is nothing to show.
      if (declaration !== undefined) return declaration.backend === undefined ? [await whoHasAccess(context, declaration, target.id)] : [];
      if (target.type === 'user' || target.type === 'group') return [await hasAccessTo(context, target.type, target.id)];
      return [];
    },
  };
}

function grantsResource(declared: () => ReadonlyMap<string, ObjectActions>): AdminResource {
  return {
    name: 'grants',
    label: 'Grants',
    singular: 'grant',
    group: 'Access',
    icon: 'key',
    auditedAs: 'grant',
    isRestricted: true,
    description: 'What users and groups may do to single objects. You can only grant or revoke actions that you have.',
    columns: list.columns,
    filters: [
      { name: 'user', label: 'User', kind: 'reference', of: 'user' },
      { name: 'group', label: 'Group', kind: 'reference', of: 'group' },
      { name: 'subject', label: 'Who, as tenant or user:<id>', kind: 'text' },
      { name: 'type', label: 'Type', kind: 'text' },
      { name: 'object', label: 'Object id', kind: 'text' },
    ],
    suggestions: () => {
      // Another backend decides without stored grants.
      const types = [...declared().values()].filter(({ backend }) => backend === undefined);
      return Promise.resolve({
        type: types.map(({ type }) => type),
        set: [...new Set(types.flatMap(({ sets }) => Array.from(sets.keys())))],
        actions: [...new Set(types.flatMap(({ actions }) => Array.from(actions)))],
      });
    },
    creation: {
      fields: [
        ...subjectFields,
        { name: 'type', label: 'Type', kind: 'text', required: true, help: 'The table of the object.' },
        { name: 'object', label: 'Object id', kind: 'text', required: true },
        { name: 'set', label: 'Set', kind: 'text', nullable: true, help: 'A named set of actions of this type, such as `viewer`.' },
        { name: 'actions', label: 'Actions', kind: 'strings', nullable: true, help: 'Single actions, where no set fits.' },
        expiryField,
      ],
    },
    editable: false,
    removable: true,
    dryRunsRemoval: true,
    removal: 'They lose this access with the next request.',
    actions: [],
    async list(context, query) {
      const { db, principal, linkTo } = context;
      const where = new AdminConditions(db.dialect);
      const { user, group, type, object } = query.filters;
      const subjects = [
        query.filters['subject'],
        ...(user === undefined ? [] : [userSubject(user)]),
        ...(group === undefined ? [] : [subjectText({ kind: 'group', id: group })]),
      ].filter((each) => each !== undefined);
      for (const subject of subjects) where.add(`g.subject = ${where.parameter(subject)}`);
      if (type !== undefined) where.add(`g.object_type = ${where.parameter(type)}`);
      if (object !== undefined) where.add(`g.object_id = ${where.parameter(object)}`);
      // Callers who are not superusers see grants of their own, and those of an object they may share: a list of all would name objects they may not see.
      const mayShareAll = await mayShare(context, type, object);
      if (!mayShareAll)
        where.add(
          `(g.granted_by = ${where.parameter(principal.user.id)} or g.subject = ${where.parameter(userSubject(principal.user.id))})`,
        );
      // The index of subjects has no others.
      if (subjects.length > 0) where.add('g.object_deleted_at is null');
      // Neither who granted nor an id without its type has an index.
      const isNarrowed = subjects.length > 0 || (type !== undefined && object !== undefined);
      if (!isNarrowed && (!mayShareAll || object !== undefined)) await newestRows(db, where, list.place);
      else await boundOrder(db, where, query, list.orders, list.place);
      const { rows, ...page } = await list.rows<GrantRow>(db, query, where);
      const names = await namesOf(db, rows.flatMap(subjectsOf));
      const objects = await objectNames(context, rows);
      const items = rows.map((row) => rowOf(row, names, objects.get(objectOf(row)), linkTo));
      return { items, ...page };
    },
    async titles(context, ids) {
      const { db, linkTo } = context;
      const rows = await visibleGrants(context, await findGrants(db, ids.filter(isUuid)));
      const names = await namesOf(db, rows.flatMap(subjectsOf));
      const objects = await objectNames(context, rows);
      return new Map(rows.map((row) => [row.id, rowOf(row, names, objects.get(objectOf(row)), linkTo).title]));
    },
    async read(context, id) {
      const { db, principal, linkTo } = context;
      const row = isUuid(id) ? await findGrant(db, id) : null;
      const { user } = principal;
      if (row === null) return null;
      const isOwn = row.granted_by === user.id || row.subject === userSubject(user.id);
      if (!isOwn && !(await mayShare(context, row.object_type, row.object_id))) return null;
      const shown = rowOf(row, await namesOf(db, subjectsOf(row)), (await objectNames(context, [row])).get(objectOf(row)), linkTo);
      return {
        ...shown,
        sections: [
          list.facts('Grant', row, { ...shown.values, subject_id: row.subject }, [
            { name: 'subject_id', label: 'Subject', kind: 'code' },
            'id',
          ]),
        ],
        actions: [],
        removable: true,
      };
    },
    async validate(context, fields) {
      await context.db.transaction(async (tx) => void (await checkedGrant(tx, context, fields)), CONFLICT_RETRIES);
    },
    async create(context, fields) {
      const { db, principal, requestId } = context;
      const [row] = await db.transaction(async (tx) => {
        const { object, subject, terms } = await checkedGrant(tx, context, fields);
        const given = { subject: subject as string, ...terms };
        return shareObject(tx, object as SharedObject, [given], { by: principal, requestId }, () => ['body']);
      }, CONFLICT_RETRIES);
      return { message: 'Granted.', id: (row as GrantRow).id };
    },
    async remove(context, id) {
      const { db, principal, requestId } = context;
      const row = isUuid(id) ? await findGrant(db, id) : null;
      if (row === null) throw coreErrors.not_found();
      const declaration = objectType(context, row.object_type);
      await db.transaction(async (tx) => {
        const asker = await adminAskerOf(context, declaration, row.object_id, tx);
        await unshareObject(tx, await lockToShare(tx, declaration, row.object_id, asker), row.id, { by: principal, requestId });
      }, CONFLICT_RETRIES);
      return { message: 'The grant is revoked.' };
    },
  };
}

/** What a form asks for, and the object, locked. Every fault of the fields that are given at once. */
async function checkedGrant(tx: Db, context: AdminContext, fields: Readonly<Record<string, unknown>>) {
  const { type, object: id, set, actions, expires_at: until } = fields;
  const { tenant } = await adminAsker(context);
  const faults = new FaultCollector();
  const declaration = typeof type === 'string' ? faults.check(() => objectType(context, type)) : undefined;
  const object =
    declaration === undefined || typeof id !== 'string' ? undefined : await faults.check(() => objectToShare(tx, declaration, id, context));
  // An object that is not found has no tenant: what is shared is in the caller's own.
  const tenantKey = object?.link.tenantKey ?? tenant ?? '';
  const subject = await faults.check(() => requireSubject(tx, fields, tenantKey));
  const terms = {
    ...(typeof set === 'string' && set !== '' ? { set } : {}),
    ...(Array.isArray(actions) && actions.length > 0 ? { actions: actions as string[] } : {}),
    expiresAt: typeof until === 'string' ? new Date(until) : null,
  };
  faults.check(() => checkTerms(tx, declaration, terms, ['body']));
  faults.throwIfAny();
  return { object, subject, terms };
}

/** Not to be seen by the caller is not to exist. */
async function objectToShare(tx: Db, declaration: ObjectActions, id: string, context: AdminContext): Promise<SharedObject> {
  try {
    return await lockToShare(tx, declaration, id, await adminAskerOf(context, declaration, id, tx));
  } catch (error) {
    if (!isKitError(error, 'object_not_found') && !isKitError(error, 'not_found')) throw error;
    throw fieldFault('object', 'unknown_object', 'There is no such object.');
  }
}

/** Superusers share everything; the rest what they hold `share` on. */
async function mayShare(context: AdminContext, type: string | undefined, id: string | undefined): Promise<boolean> {
  const { db, principal } = context;
  if (principal.user.is_superuser) return true;
  const declaration = type === undefined ? undefined : grantsState.of(db).objects.get(type);
  if (declaration === undefined || id === undefined) return false;
  const asker = await adminAsker(context);
  return (await sharedBy(db, declaration, id, asker)) !== undefined;
}

function objectType({ db }: AdminContext, type: string): ObjectActions {
  const { objects } = grantsState.of(db);
  const found = objects.get(type);
  if (found === undefined)
    throw fieldFault('type', 'unknown_type', `There are no actions for "${type}". Known: ${[...objects.keys()].join(', ')}.`);
  return found;
}

const SUBJECT_FIELDS = ['user', 'group', 'everyone'] as const;

/** One of the fields says who; a fault stands at the field that has it. */
async function requireSubject(tx: Db, fields: Readonly<Record<string, unknown>>, tenantKey: string): Promise<string> {
  const [given, ...more] = SUBJECT_FIELDS.filter((name) => typeof fields[name] === 'string' && fields[name] !== '');
  if (given === undefined) throw fieldFault('user', 'required', 'Choose a user, a group or everyone.');
  const [second] = more;
  if (second !== undefined) throw fieldFault(second, 'invalid', 'Choose one: a user, a group or everyone.');
  const text = String(fields[given]);
  const found = await findSubject(tx, given === 'everyone' ? text : `${given}:${text}`, tenantKey);
  if ('fault' in found) throw fieldFault(given, 'unknown_subject', found.fault);
  return found.subject;
}

function fieldFault(name: string, code: string, message: string): Error {
  return coreErrors.validation_error({ errors: [{ location: ['body', name], code, message }] });
}

/** The subject, and the user who granted. */
function subjectsOf({ subject, granted_by }: GrantRow): string[] {
  return [subject, ...(granted_by === null ? [] : [userSubject(granted_by)])];
}

function rowOf(
  row: GrantRow,
  names: ReadonlyMap<string, string | null>,
  objectName: string | undefined,
  linkTo: AdminContext['linkTo'],
): AdminRow {
  const { set, actions } = shownActions(row.actions);
  const object = objectName === undefined ? objectOf(row) : `${row.object_type}/${objectName}`;
  const who = names.get(row.subject) ?? row.subject;
  return {
    id: row.id,
    title: `${who} on ${object}`,
    values: list.values(row, {
      subject: who,
      object: linkTo(row.object_type, row.object_id, object) ?? object,
      actions: set === null ? (actions ?? []) : [set],
      granted_by: row.granted_by === null ? null : (names.get(userSubject(row.granted_by)) ?? row.granted_by),
    }),
  };
}
