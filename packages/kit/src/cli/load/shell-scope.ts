import type { App } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import { audienceFaults } from '../../crud/checks/audience-faults.ts';
import { isResource, type AnyResource } from '../../crud/declare/resource.ts';
import { crudOf } from '../../crud/serve/crud-of.ts';
import { toolkitTables } from './toolkit-tables.ts';

type Program = ReturnType<ReturnType<typeof crudOf>['as']>;

/** What the lines of `kit shell` can use, by name. */
export interface ShellScope {
  readonly app: App;
  readonly db: App['db'];
  readonly resources: Readonly<Record<string, AnyResource>>;
  /**
   * The resources as a user reaches them: `await as('ada')`, `await as('ada', { tenant })`, `await as(null)` for an anonymous caller. Those that are
   * for audiences alone are there with `{ audience }`, and then only those that have it.
   */
  as(
    login: string | User | null,
    options?: { readonly tenant?: string | null; readonly audience?: string },
  ): Promise<Readonly<Record<string, Program>>>;
}

/** Of an app that is ready. */
export function shellScope(app: App): ShellScope {
  const resources = resourcesOf(app);
  return {
    app,
    db: app.db,
    resources,
    async as(login, { tenant = null, audience } = {}) {
      const user = typeof login === 'string' ? await userOf(app, login) : login;
      const caller = { user, tenant, ...(audience === undefined ? {} : { audience }) };
      const reached = Object.entries(resources).filter(([, resource]) => isReached(resource, audience));
      return Object.fromEntries(reached.map(([name, resource]) => [name, crudOf(app, resource).as(caller)]));
    },
  };
}

/** Whether callers of this audience reach the resource; without one, whether it has rules of its own. */
export function isReached(resource: AnyResource, audience: string | null = null): boolean {
  return audienceFaults('', resource, audience).length === 0;
}

/**
 * By name: of controllers, of the app and of its modules. Those of the toolkit's tables come last, where a controller offers them and the app has no
 * resource of the name.
 */
function resourcesOf(app: App): Record<string, AnyResource> {
  const toolkit = toolkitTables(app);
  const isOwn = ({ model }: AnyResource): boolean => !toolkit.has(model.name);
  const offered = app.controllers
    .map(({ constructor }) => (constructor as { readonly crudResource?: unknown }).crudResource)
    .filter((each): each is AnyResource => isResource(each));
  const declared = app.resources.filter((each): each is AnyResource => isResource(each));
  const own = Object.fromEntries([...offered, ...declared].filter(isOwn).map((resource) => [resource.name, resource]));
  const others = offered.filter((each) => !isOwn(each) && !Object.hasOwn(own, each.name));
  return { ...own, ...Object.fromEntries(others.map((resource) => [resource.name, resource])) };
}

async function userOf(app: App, login: string): Promise<User> {
  if (app.users === null) throw new Error('The app has no users: add accounts() to modules, or pass a user.');
  const user = await app.users.findByLogin(app.db, login);
  if (user !== null) return user;
  throw new Error(`There is no user "${login}". kit user list shows all of them.`);
}
