import { sameId } from '../../../auth/people/same-id.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Model } from '../../../db/declare/model.ts';
import { compileWhere } from '../../../db/sql/where/compile-where.ts';
import { statementsOf } from '../../../db/sql/model-statements.ts';
import { quoteName } from '../../../db/declare/names.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { type Asker, type KnownAsker, requireAsker } from '../declare/asker.ts';
import { isExempt, knownAsker, subjectsOf } from '../caller/caller-subjects.ts';
import { ownedOrGranted, requireAction } from '../rows/granted-condition.ts';
import { declarationOf, grantsState, type ObjectRef } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { type ChainLink, keyText, objectChain } from '../declare/object-chain.ts';
import { grantsOn, type GrantRow } from '../rows/store.ts';
import { namesOf } from '../caller/subject-names.ts';
import { shownActions } from '../declare/stored-actions.ts';
import { userSubject } from '../declare/subject.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';

/** Why a caller may do something: as the owner, or by a grant, on the object or on one of its parents. */
export interface AccessPath {
  readonly kind: 'owner' | 'grant';
  readonly subject: string;
  /** The object that gives it: the object itself, or a parent. */
  readonly object: { readonly type: string; readonly id: string };
  readonly isInherited: boolean;
  readonly actions: readonly string[];
  readonly set: string | null;
  readonly expiresAt: Date | null;
  readonly grantId: string | null;
}

/** What an asker may do to one object, and until when. */
export interface Holdings {
  readonly exists: boolean;
  readonly isSuperuser: boolean;
  /** The owner's rule of the resource exempts the asker. */
  readonly isExempt: boolean;
  readonly paths: readonly AccessPath[];
  /** By action; null is without an expiry. */
  readonly until: ReadonlyMap<string, Date | null>;
}

/**
 * Reads what an asker holds. Nobody holds anything on an object of another tenant, superusers neither. `given` in place of the stored chain asks
 * what held before a row was moved.
 */
export async function holdingsOf(
  db: Db,
  declaration: ObjectActions,
  id: unknown,
  asker: KnownAsker,
  given?: readonly ChainLink[],
): Promise<Holdings> {
  const chain = given ?? (await objectChain(db, declaration, id));
  const none = { exists: chain.length > 0, isSuperuser: false, isExempt: false, paths: [], until: new Map() };
  const everything = () => new Map([...declaration.actions].map((action) => [action, null]));
  const { user } = asker;
  const [object] = chain;
  if ((user !== null && !user.is_active) || (object !== undefined && isForeign(object, asker))) return none;
  if (user?.is_superuser === true) return { ...none, isSuperuser: true, until: everything() };
  if (object?.isDeleted === false && (await isExempt(declaration, asker))) return { ...none, isExempt: true, until: everything() };
  const links = livingLinks(chain).filter((link) => !isForeign(link, asker));
  const subjects = new Set(links.flatMap(({ declaration: each }) => subjectsOf(each, asker)));
  const rows = await grantsOn(db, links.map(asObject), [...subjects]);
  const owner = user === null ? null : user.id;
  const counts = (row: GrantRow, each: ObjectActions) => subjectsOf(each, asker).includes(row.subject);
  const paths = pathsOf(declaration, links, rows, asker.now, owner, counts);
  return { ...none, paths, until: untilOf(paths) };
}

/** An object of another tenant than the asker's. */
export function isForeign({ declaration, tenantKey }: ChainLink, { tenant }: Asker): boolean {
  return declaration.tenant !== undefined && tenantKey !== (tenant ?? '');
}

/** Parents count up to the first that is deleted; of a deleted object nothing does. */
function livingLinks(chain: readonly ChainLink[]): readonly ChainLink[] {
  const end = chain.findIndex(({ isDeleted }) => isDeleted);
  return end === -1 ? chain : chain.slice(0, end);
}

function asObject({ declaration, id }: ChainLink): { readonly type: string; readonly id: string } {
  return { type: declaration.type, id };
}

function pathsOf(
  declaration: ObjectActions,
  links: readonly ChainLink[],
  rows: readonly GrantRow[],
  now: Date,
  /** Undefined: any owner. */
  owner: string | null | undefined,
  counts: (row: GrantRow, declaration: ObjectActions) => boolean,
): AccessPath[] {
  const paths: AccessPath[] = [];
  for (const [index, link] of links.entries()) {
    const own = { object: asObject(link), isInherited: index > 0 };
    // Only actions that the object itself has can be inherited.
    const usable = (actions: Iterable<string>) => [...actions].filter((action) => declaration.actions.has(action));
    if (link.owner !== null && (owner === undefined || (owner !== null && sameId(link.owner, owner))))
      paths.push({
        ...own,
        kind: 'owner',
        subject: userSubject(link.owner),
        actions: usable(link.declaration.actions),
        set: null,
        expiresAt: null,
        grantId: null,
      });
    for (const row of rows) {
      if (row.object_type !== link.declaration.type || row.object_id !== link.id || !counts(row, link.declaration)) continue;
      if (row.expires_at !== null && row.expires_at <= now) continue;
      const actions = usable(link.declaration.expand(row.actions));
      const { set } = shownActions(row.actions);
      if (actions.length > 0)
        paths.push({ ...own, kind: 'grant', subject: row.subject, actions, set, expiresAt: row.expires_at, grantId: row.id });
    }
  }
  return paths;
}

function untilOf(paths: readonly AccessPath[]): Map<string, Date | null> {
  const until = new Map<string, Date | null>();
  for (const { actions, expiresAt } of paths)
    for (const action of actions) {
      const known = until.get(action);
      if (known === null) continue;
      if (known === undefined || expiresAt === null || expiresAt > known) until.set(action, expiresAt);
    }
  return until;
}

/**
 * What the asker may do to an object, as owner, by grants, groups and parents. Nothing for an object that does not exist, is deleted or belongs
 * to another tenant.
 */
export async function actionsOf(db: Db, asker: Asker, object: ObjectRef): Promise<ReadonlySet<string>> {
  requireArguments('actionsOf()', { db, object }, { db: queryable, object: anObject });
  requireAsker('actionsOf()', asker);
  const { type, id } = object;
  const declaration = declarationOf(db, type);
  const { exists, until } = await holdingsOf(db, declaration, id, await knownAsker(db, asker));
  return new Set(exists ? until.keys() : []);
}

/** Everybody who may do the action to an object, with the path that gives it. Groups and wide subjects stand for their members. */
export async function whoCan(db: Db, object: ObjectRef, action: string): Promise<readonly AccessPath[]> {
  requireArguments('whoCan()', { db, object }, { db: queryable, object: anObject });
  const { type, id } = object;
  const declaration = declarationOf(db, type);
  requireAction(declaration, action);
  return (await allPaths(db, declaration, id)).filter(({ actions }) => actions.includes(action));
}

/** Every path to an object, of every subject. */
export async function allPaths(db: Db, declaration: ObjectActions, id: unknown): Promise<readonly AccessPath[]> {
  const links = livingLinks(await objectChain(db, declaration, id));
  const rows = await grantsOn(db, links.map(asObject));
  const isAllowed = ({ subject }: GrantRow, { subjects }: ObjectActions) =>
    subject.includes(':') || (subjects as ReadonlySet<string>).has(subject);
  return pathsOf(declaration, links, rows, grantsState.of(db).clock.now(), undefined, isAllowed);
}

export interface ObjectsOptions {
  /** Most ids of one page. Default: 1,000. */
  readonly limit?: number;
  /** The last id of the page before. */
  readonly after?: string;
}

const OBJECTS_DEFAULT = 1_000;
const OBJECTS: ReadonlySet<string> = new Set(Object.keys({ limit: true, after: true } satisfies Record<keyof ObjectsOptions, true>));

/** The ids of the objects in the asker's tenant that it may do the action to, in the order of their keys. */
export async function objectsOf(db: Db, asker: Asker, model: Model, action: string, options: ObjectsOptions = {}): Promise<string[]> {
  refuseUnknownNames('objectsOf()', options, OBJECTS);
  requireAsker('objectsOf()', asker);
  const declaration = declarationOf(db, model);
  requireAction(declaration, action);
  const { limit = OBJECTS_DEFAULT, after } = options;
  const where = compileWhere(declaration.model, await ownedOrGranted(db.dialect, declaration, await knownAsker(db, asker), action));
  if (where.constant === false) return [];
  const { table } = statementsOf(declaration.model);
  const key = `t0.${quoteName(declaration.key.name)}`;
  const parameters: unknown[] = [];
  const conditions = [
    ...(where.constant === true ? [] : [where.append(db.dialect, 't0', parameters)]),
    ...(declaration.deletedAt === undefined ? [] : [`t0.${quoteName(declaration.deletedAt)} is null`]),
    ...(after === undefined ? [] : [`${key} > $${parameters.push(declaration.key.encode(after))}`]),
  ];
  const rows = await db.query<{ id: unknown }>(
    `select ${key} as id from ${table} t0${conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`} order by ${key} limit $${parameters.push(limit)}`,
    parameters,
    { replanned: true },
  );
  return rows.map(({ id }) => keyText(id));
}

/** Why an asker may, or may not, do something to an object. */
export type AccessExplanation =
  | {
      readonly allowed: true;
      readonly reason: 'superuser' | 'owner_unless' | 'owner' | 'grant';
      readonly paths: readonly AccessPath[];
      readonly text: string;
    }
  | {
      readonly allowed: false;
      readonly reason: 'no_such_object' | 'other_tenant' | 'inactive' | 'anonymous' | 'not_granted' | 'not_visible';
      readonly paths: readonly AccessPath[];
      readonly text: string;
    };

/** Explains why a caller can or cannot perform an action on an object: every path that was tried, and its result. */
export async function explainAccess(db: Db, asker: Asker, object: ObjectRef, action: string): Promise<AccessExplanation> {
  requireArguments('explainAccess()', { db, object }, { db: queryable, object: anObject });
  requireAsker('explainAccess()', asker);
  const { type, id } = object;
  const { user, tenant } = asker;
  const declaration = declarationOf(db, type);
  requireAction(declaration, action);
  const chain = await objectChain(db, declaration, id);
  const { exists, isSuperuser, isExempt: byRule, paths, until } = await holdingsOf(db, declaration, id, await knownAsker(db, asker), chain);
  const place = `${declaration.type}/${keyText(id)}`;
  const who = user === null ? 'An anonymous caller' : user.username;
  const refused = (reason: Extract<AccessExplanation, { allowed: false }>['reason'], text: string): AccessExplanation => ({
    allowed: false,
    reason,
    paths,
    text,
  });
  if (!exists) return refused('no_such_object', `There is no ${place}.`);
  if (isForeign(chain[0] as ChainLink, asker))
    return refused(
      'other_tenant',
      `${place} does not belong to ${tenant === null ? 'a caller without a tenant' : `the tenant ${JSON.stringify(tenant)}`}.`,
    );
  if (user !== null && !user.is_active) return refused('inactive', `${who} is deactivated.`);
  if (isSuperuser) return { allowed: true, reason: 'superuser', paths: [], text: `${who} is a superuser.` };
  if (byRule)
    return {
      allowed: true,
      reason: 'owner_unless',
      paths: [],
      text: `${who} reaches every row: owner, unless ${declaration.ownerUnless?.name}.`,
    };
  const giving = paths.filter(({ actions }) => actions.includes(action));
  const [first] = giving;
  if (first === undefined)
    return user === null && paths.length === 0
      ? refused('anonymous', `${who} has no access: ${place} is not public.`)
      : refused('not_granted', `${who} holds ${[...until.keys()].join(', ') || 'nothing'} on ${place}, not "${action}".`);
  if (!until.has('view'))
    return refused('not_visible', `${who} holds "${action}" on ${place}, but not "view", which every action requires.`);
  const names = await namesOf(
    db,
    giving.map(({ subject }) => subject),
  );
  const text = `${who} may do "${action}": ${giving.map((path) => describePath(path, names)).join('; ')}.`;
  return { allowed: true, reason: first.kind, paths: giving, text };
}

/** A path in words: `the group desk was granted editor on its parent folders/018f…`. */
export function describePath(
  { kind, subject, object, isInherited, set, actions, expiresAt }: AccessPath,
  names: ReadonlyMap<string, string | null>,
  itself = `${object.type}/${object.id}`,
): string {
  const name = names.get(subject) ?? subject;
  const who = subject.startsWith('group:') && name !== subject ? `the group ${name}` : name;
  const what = kind === 'owner' ? `${who} owns` : `${who} was granted ${set ?? actions.join(', ')} on`;
  const where = isInherited ? `its parent ${object.type}/${object.id}` : itself;
  return `${what} ${where}${expiresAt === null ? '' : ` until ${expiresAt.toISOString()}`}`;
}
