import type { CalledRoute } from '../../auth/request/authenticator.ts';
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

/** Keys are no people. */
const OF_PROGRAMS: ReadonlySet<string> = new Set(['api_key', 'api_key_bearer']);

/** The operations that sessions of links reach: those of the pages that they show, as far as people may call them. No other one, in any app. */
export class LinkReach {
  readonly #pages = new Map<CalledRoute, Set<string>>();

  /** `login`: the authenticators of the login of the app; null where people log in elsewhere. */
  fill(pages: readonly CallingPage[], login: readonly string[] | null): void {
    const isForPeople = ({ authenticators }: CalledRoute) =>
      authenticators.some(({ name }) => (login === null ? !OF_PROGRAMS.has(name) : login.includes(name)));
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
