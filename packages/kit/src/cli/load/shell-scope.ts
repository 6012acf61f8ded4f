import type { App } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import { isResource, type AnyResource } from '../../crud/declare/resource.ts';
import { crudOf } from '../../crud/serve/crud-of.ts';

type Program = ReturnType<ReturnType<typeof crudOf>['as']>;

/** What the lines of `kit shell` can use, by name. */
export interface ShellScope {
  readonly app: App;
  readonly db: App['db'];
  readonly resources: Readonly<Record<string, AnyResource>>;
  /** The resources as a user reaches them: `await as('ada')`, `await as('ada', { tenant })`, `await as(null)` for an anonymous caller. */
  as(login: string | User | null, options?: { readonly tenant?: string | null }): Promise<Readonly<Record<string, Program>>>;
}

/** Of an app that is ready. */
export function shellScope(app: App): ShellScope {
  const resources = resourcesOf(app);
  return {
    app,
    db: app.db,
    resources,
    async as(login, { tenant = null } = {}) {
      const user = typeof login === 'string' ? await userOf(app, login) : login;
      return Object.fromEntries(Object.entries(resources).map(([name, resource]) => [name, crudOf(app, resource).as({ user, tenant })]));
    },
  };
}

/** Of controllers, of modules and of the app, by name. */
function resourcesOf(app: App): Record<string, AnyResource> {
  const ofControllers = app.controllers.map(({ constructor }) => (constructor as { readonly crudResource?: unknown }).crudResource);
  const found = [...ofControllers, ...app.resources].filter((each): each is AnyResource => isResource(each));
  return Object.fromEntries(found.map((resource) => [resource.name, resource]));
}

async function userOf(app: App, login: string): Promise<User> {
  if (app.users === null) throw new Error('The app has no users: add accounts() to modules, or pass a user.');
  const user = await app.users.findByLogin(app.db, login);
  if (user !== null) return user;
  throw new Error(`There is no user "${login}". kit user list shows all of them.`);
}
