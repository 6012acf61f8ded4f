import type { Authenticator, CalledRoute } from '../../auth/request/authenticator.ts';
import { safeMethods } from '../../permissions/built-ins.ts';

/** What the link of a session says. */
export interface LinkScope {
  /** Empty: all. */
  readonly pages: readonly string[];
  readonly manage: boolean;
}

/** A page, and the operations that it calls. */
export interface CallingPage {
  readonly page: { readonly name: string };
  readonly operations: readonly CalledRoute[];
}

/** The credentials of an app, as far as it is known which of them are of people. */
export interface AppCredentials {
  readonly authenticators: readonly Pick<Authenticator, 'name' | 'issuers' | 'callsRoute'>[];
  /** Those of the login of the app; null where people log in elsewhere. */
  readonly login: readonly string[] | null;
}

/** The operations that sessions of links reach: those of the pages that they show, as far as people may call them. No other one, in any app. */
export class LinkReach {
  readonly #pages = new Map<CalledRoute, Set<string>>();

  learn(pages: readonly CallingPage[], app: AppCredentials): void {
    const isForPeople = forPeople(app);
    for (const { page, operations } of pages)
      for (const route of operations.filter(isForPeople)) {
        const names = this.#pages.get(route) ?? new Set();
        this.#pages.set(route, names.add(page.name));
      }
  }

  /** Without the scope of a link it is no session of one. */
  has(route: CalledRoute, scope: LinkScope | undefined): boolean {
    const names = this.#pages.get(route);
    if (names === undefined || scope === undefined || (!scope.manage && !safeMethods.has(route.method))) return false;
    return scope.pages.length === 0 || scope.pages.some((page) => names.has(page));
  }
}

/**
 * Whether people may call an operation. Where the app has a login: the operation accepts it. Where people log in elsewhere: it accepts access tokens of
 * an authorization server, or every credential of the app; what names others in `auth` is for those alone, as nobody knows that they are of people.
 */
function forPeople({ authenticators, login }: AppCredentials): (route: CalledRoute) => boolean {
  const ofPeople = login ?? authenticators.filter(({ issuers }) => issuers !== undefined).map(({ name }) => name);
  const all = authenticators.filter(({ callsRoute }) => callsRoute === undefined).map(({ name }) => name);
  return (route) => {
    const accepted = new Set(route.authenticators.map(({ name }) => name));
    return ofPeople.some((name) => accepted.has(name)) || (login === null && all.every((name) => accepted.has(name)));
  };
}
