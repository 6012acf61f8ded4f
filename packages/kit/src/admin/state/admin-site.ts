import type {
  AdminAction,
  AdminContext,
  AdminDeclaration,
  AdminResource,
  AdminSectionsPage,
  AdminUploads,
} from '../../app/admin/declaration.ts';
import type { AdminActionShape, AdminColumn, AdminField, AdminResourceShape, AdminFilter } from '../../app/admin/shapes.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { App } from '../../app/declare/module.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { Fault } from '../../options/fault.ts';
import { withBulkDelete } from '../model/bulk-delete.ts';
import { closedCreation, closing } from '../../app/admin/closed-fields.ts';
import { adminErrors } from '../../screens/errors.ts';
import type { AdminRole, AdminSettings } from '../options.ts';
import { FileFields } from '../wire/file-fields.ts';
import { resourceFaults, sourceFaults } from '../model/resource-faults.ts';
import { readSite, type SiteFile } from './site-files.ts';
import { targetSight } from '../staff/target-sight.ts';
import { neededRoleFaults, refusalOf, roleOf, type StaffOperation } from '../staff/staff-roles.ts';
import { dressed } from './dressed-page.ts';
import { adminKind, readOnlyRefusal, type SiteKind } from './site-kind.ts';
import { ResponseTimes } from './response-times.ts';
import { StoppedReads } from './stopped-reads.ts';

/** Fields that hold the id of a user, wherever they are. */
const USER_FIELDS: ReadonlySet<string> = new Set([
  'owner_id',
  'user_id',
  'actor_id',
  'created_by',
  'updated_by',
  'deleted_by',
  'granted_by',
]);

type Suggestions = Readonly<Record<string, readonly string[]>>;

const NO_LOGIN: Fault = {
  id: 'E034',
  message: 'admin() needs to know how staff log in.',
  hint: 'Add accounts() to the modules, or betterAuth() and pages(), or describe your own login: createApp({ login }).',
};

type Asked = Pick<HandlerContext, 'db' | 'databases' | 'clock' | 'requestId' | 'log' | 'request'> & {
  readonly caller: () => Promise<{ readonly tenant: string | null }>;
};

type ContextFacts = Pick<AdminContext, 'db' | 'databases' | 'clock' | 'requestId' | 'log' | 'tenant' | 'exchange'>;

/** The module at run time: what the modules of the app declare, and the built browser application. */
export class AdminSite {
  readonly settings: AdminSettings;
  readonly kind: SiteKind;
  readonly stoppedReads = new StoppedReads();
  readonly responseTimes = new ResponseTimes();
  /** When this process began to serve it. */
  startedAt: Date | null = null;
  #app: App | undefined;
  #declarations: readonly AdminDeclaration[] = [];
  #resources: ReadonlyMap<string, AdminResource> = new Map();
  #files: ReadonlyMap<string, SiteFile> = new Map();
  #page = '';
  #fileFields = new FileFields(undefined, {});

  constructor(settings: AdminSettings, kind: SiteKind = adminKind) {
    this.settings = settings;
    this.kind = kind;
  }

  installIn(app: App): void {
    this.#app = app;
    this.#declarations = this.kind.declarations(app);
    const resources = this.#declarations
      .flatMap((each) => each.resources ?? [])
      .map((each) => (each.installedIn === undefined ? each : each.installedIn(app)))
      .filter((each) => each !== null);
    this.#fileFields = new FileFields(this.uploads, app);
    const offered = resources.map(withBulkDelete);
    const faults = [
      // People come to the portal by links, too.
      ...(app.registry.login === null && (this.kind.isForStaff || app.users === null) ? [NO_LOGIN] : []),
      ...resourceFaults(offered),
      ...sourceFaults(resources, app),
      ...this.#fileFields.faults(resources),
      ...neededRoleFaults(this.settings, offered),
    ];
    if (faults.length > 0) throw new StartUpError(faults);
    this.#resources = new Map(offered.map((resource) => [resource.name, resource]));
  }

  async readFiles(): Promise<void> {
    const files = await readSite(this.settings.site);
    if (files === null) {
      const message = `The admin site has no built browser application in ${this.settings.site.pathname}.`;
      throw new StartUpError([
        { id: 'E011', message, hint: 'In a checkout of kit, run `npm run build:admin`; the published package has it.' },
      ]);
    }
    this.#files = files;
    this.#page = files.get('index.html')?.content.toString('utf8') ?? '';
  }

  get uploads(): AdminUploads | undefined {
    return this.#declarations.find(({ uploads }) => uploads !== undefined)?.uploads;
  }

  /** The fields as the browser draws them: those that refer to uploads take files. */
  drawn(resource: AdminResource, fields: readonly AdminField[]): readonly AdminField[] {
    return this.#fileFields.drawn(resource, fields);
  }

  get files(): ReadonlyMap<string, SiteFile> {
    return this.#files;
  }

  /** The document, with the title, the language and the colours of this application from the first moment. */
  get page(): string {
    return dressed(this.#page, this.title, this.kind.portal);
  }

  get title(): string {
    return this.settings.title ?? this.app.title;
  }

  get app(): App {
    if (this.#app === undefined) throw new Error('admin() is not installed: add it to the modules of createApp.');
    return this.#app;
  }

  get declarations(): readonly AdminDeclaration[] {
    return this.#declarations;
  }

  /** What the browser is told about the lists: only what it draws, and of that what the role may read. */
  async shapesFor(role: AdminRole, context: AdminContext): Promise<readonly AdminResourceShape[]> {
    const access = await this.kind.access?.(context);
    const readable = [...this.#resources.values()].filter(
      (resource) => access?.shows(resource.name) !== false && refusalOf(this.settings, role, resource, 'read') === null,
    );
    return Promise.all(
      readable.map(async (resource) => {
        const closed: Readonly<Record<string, string>> = await saidBy(resource, context, 'closed fields', () =>
          resource.closedFields?.(context),
        );
        const creation = closedCreation(resource.creation, closed);
        const drawn = 'refused' in creation ? creation : { fields: this.drawn(resource, creation.fields) };
        // The same values for many records: fields that are closed on each of them.
        const actions = resource.actions.map((action) =>
          action.sets === true ? { ...action, fields: action.fields?.map((field) => closing(field, closed)) ?? [] } : action,
        );
        const suggestions: Suggestions = await saidBy(resource, context, 'suggestions', () => resource.suggestions?.(context));
        return shapeOf(
          { ...resource, creation: drawn, actions },
          (operation) => refusalOf(this.settings, role, resource, operation) ?? readOnlyRefusal(access, operation),
          (each) => suggesting(this.resolved(role, each), suggestions[each.name]),
          {
            follows: (await resource.isFollowed?.(context)) === true,
            polls: this.kind.isForStaff && resource.auditReads !== true,
            recordsReads: resource.auditReads === true,
          },
        );
      }),
    );
  }

  /** A reference with the list to search in; a text field where the role may not read it, or there is none. */
  resolved<T extends AdminField | AdminFilter>(role: AdminRole, { of, ...each }: T): T {
    if (each.kind !== 'reference') return each as T;
    const target = of === undefined ? undefined : this.#target(of);
    const isReadable = target !== undefined && refusalOf(this.settings, role, target, 'read') === null;
    return (isReadable ? { ...each, resource: target.name } : { ...each, kind: 'text' }) as T;
  }

  #target(targetType: string): AdminResource | undefined {
    return [...this.#resources.values()].find(
      ({ auditedAs, table, name }) => auditedAs === targetType || table === targetType || name === targetType,
    );
  }

  /** Pages that are not lists. */
  get pages(): readonly AdminSectionsPage[] {
    return this.#declarations.flatMap(({ pages = [] }) => pages);
  }

  get resources(): Iterable<AdminResource> {
    return this.#resources.values();
  }

  resource(name: string): AdminResource {
    const found = this.#resources.get(name);
    if (found === undefined) throw adminErrors.resource_not_found({ extensions: { resources: [...this.#resources.keys()] } });
    return found;
  }

  context({ request, db, databases, clock, requestId, log, caller }: Asked, principal: Principal): AdminContext {
    // With an idempotency key the change and the record of its key are one transaction.
    const exchange = exchangeOf(request);
    const { tx } = exchange;
    const tenant = async (): Promise<string | null> => (await caller()).tenant;
    const facts = { clock, requestId, log, tenant, exchange };
    return this.contextOf(
      tx === undefined ? { ...facts, db, databases } : { ...facts, db: tx, databases: { ...databases, default: tx } },
      principal,
    );
  }

  contextOf(facts: ContextFacts, principal: Principal): AdminContext {
    const of = (targetType: string) => this.#target(targetType);
    const linkTo: AdminContext['linkTo'] = (targetType, id, text = id) => {
      const target = of(targetType);
      return target === undefined ? null : { resource: target.name, id, text };
    };
    const refersTo: AdminContext['refersTo'] = (targetType, field) =>
      of(targetType)?.refers?.[field] ?? (USER_FIELDS.has(field) ? 'user' : null);
    const titlesOf: AdminContext['titlesOf'] = async (targetType, ids) =>
      ids.length === 0 ? new Map() : ((await of(targetType)?.titles?.(context, [...new Set(ids)])) ?? new Map());
    const idsOf: AdminContext['idsOf'] = async (targetType, titles) => {
      const target = of(targetType);
      const isReadable =
        target !== undefined && refusalOf(this.settings, await roleOf(this.settings, principal.user), target, 'read') === null;
      return titles.length === 0 || !isReadable ? new Map() : ((await target.idsOfTitles?.(context, titles)) ?? new Map());
    };
    const sightOf: AdminContext['sightOf'] = async (targetType, ids) => {
      const target = of(targetType);
      const role = await roleOf(this.settings, principal.user);
      if (target !== undefined && refusalOf(this.settings, role, target, 'read') !== null) return { ids: new Set(), shows: () => false };
      return targetSight(context, targetType, [...new Set(ids)], target);
    };
    const { audit } = this.app.registry;
    const context: AdminContext = {
      ...facts,
      app: this.app,
      principal,
      audit,
      linkTo,
      titlesOf,
      idsOf,
      sightOf,
      refersTo,
      uploads: this.uploads,
    };
    return context;
  }
}

/** What a resource says besides its declaration. A database that cannot be reached must not keep people out of the site. */
async function saidBy<T extends object>(resource: AdminResource, context: AdminContext, what: string, read: () => Promise<T> | undefined) {
  try {
    return (await read()) ?? {};
  } catch (error) {
    context.log.warn({ err: error, resource: resource.name }, `admin: ${what} could not be read`);
    return {};
  }
}

function suggesting<T extends AdminField | AdminFilter>(each: T, more: readonly string[] = []): T {
  return more.length === 0 ? each : { ...each, suggestions: [...new Set([...(each.suggestions ?? []), ...more])] };
}

/** Why a column cannot be sorted, where its declaration does not say. */
function unsortableNote({ kind }: AdminColumn): string {
  if (kind === 'chips' || kind === 'json') return 'Cannot be sorted: each value is a list or a structure.';
  if (kind === 'link') return 'Cannot be sorted: the name is in another table. Use the filter.';
  return 'Cannot be sorted: the value is calculated for each record.';
}

function headed(column: AdminColumn): AdminColumn {
  return column.sortable === true || column.sortNote !== undefined ? column : { ...column, sortNote: unsortableNote(column) };
}

export const REASON = 'reason';

/** The fields of an action, with the one for its reason. */
export function fieldsOf({ fields = [], reason }: AdminAction): readonly AdminField[] {
  if (reason === undefined || fields.some(({ name }) => name === REASON)) return fields;
  const help = 'Goes into the audit log.';
  return [...fields, { name: REASON, label: 'Reason', kind: 'text', maxLength: 500, required: reason === 'required', help }];
}

/** Member by member: nothing of a declaration but this reaches the browser. */
function shapeOf(
  resource: AdminResource,
  refusal: (operation: StaffOperation) => string | null,
  resolved: <T extends AdminField | AdminFilter>(each: T) => T,
  tells: { readonly follows: boolean; readonly polls: boolean; readonly recordsReads: boolean },
): AdminResourceShape {
  const { name, label, singular, plural, group, description, icon, columns, filters, searches, live, creation } = resource;
  const { editable, removable, removal, empty } = resource;
  const edits = refusal('update') === null ? resource.edits : undefined;
  const exports = refusal('export') === null ? resource.exports : undefined;
  const imports = refusal('import') === null ? resource.imports : undefined;
  const shortcuts = shortcutsOf(resource, refusal);
  const follows = tells.follows ? true : undefined;
  const polls = tells.polls && !tells.follows ? true : undefined;
  const recordsReads = tells.recordsReads ? true : undefined;
  const optional = {
    plural,
    description,
    icon,
    searches,
    live,
    follows,
    polls,
    recordsReads,
    removal,
    empty,
    edits,
    exports,
    imports,
    shortcuts,
  };
  const uncreatable = refusal('create');
  const offered = 'refused' in creation ? creation : { fields: creation.fields.map(resolved) };
  return {
    name,
    label,
    singular,
    group,
    columns: columns.map(headed),
    filters: filters.map(resolved),
    creation: uncreatable === null || 'refused' in creation ? offered : { refused: uncreatable, byRole: true },
    editable: editable && refusal('update') === null,
    removable: removable && refusal('remove') === null,
    actions: resource.actions.map((action) => actionShape(action, refusal(action), resolved)),
    ...given(optional),
  };
}

/** Those whose action the role may run. */
function shortcutsOf({ shortcuts = [], actions }: AdminResource, refusal: (operation: StaffOperation) => string | null) {
  const usable = shortcuts.filter(({ action: name }) => {
    const action = actions.find((each) => each.name === name);
    return name === undefined || (action !== undefined && refusal(action) === null);
  });
  return usable.length === 0 ? undefined : usable;
}

function actionShape(action: AdminAction, refusal: string | null, resolved: (field: AdminField) => AdminField): AdminActionShape {
  const { name, label, tone, on, confirm, confirmLabel, dismissLabel, sets, dryRun } = action;
  const fields = fieldsOf(action).map(resolved);
  const refused = refusal ?? undefined;
  const previews = action.preview === undefined && dryRun === undefined ? undefined : true;
  return {
    name,
    label,
    tone,
    on,
    ...given({ confirm, confirmLabel, dismissLabel, fields: fields.length === 0 ? undefined : fields, sets, previews, dryRun, refused }),
  };
}

function given<T extends object>(optional: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: NonNullable<T[K]> };
}
