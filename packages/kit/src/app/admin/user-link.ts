import type { AdminContext } from './declaration.ts';
import type { AdminValue } from './shapes.ts';

/** An owner as a list shows them: a link to the user, or the name or id where the site has no list of users. */
export function userLink({ linkTo }: Pick<AdminContext, 'linkTo'>, id: string, name: string | null | undefined): AdminValue {
  return linkTo('user', id, name ?? undefined) ?? name ?? id;
}
