import { HOSTS_OF_APPS } from '../../../app/tenants/tenant-places.ts';
import { isUuid } from '../../../db/values/uuid.ts';

/** Longer ones are hard to type, and a label of a host name has at most 63 characters. */
export const SLUG_LENGTH_MAX = 40;

/** What is wrong with a slug; null when nothing is. A UUID would be taken for the id of a tenant. */
export function slugFault(slug: string): string | null {
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(slug) || slug.length > SLUG_LENGTH_MAX)
    return `Use lowercase letters, digits and single hyphens, at most ${SLUG_LENGTH_MAX} characters.`;
  if (isUuid(slug)) return 'A slug cannot have the form of an id.';
  return HOSTS_OF_APPS.has(slug) ? 'This slug is reserved.' : null;
}

/** A slug made of a name; empty when the name has no usable characters. */
export function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, SLUG_LENGTH_MAX - 5)
    .replaceAll(/^-+|-+$/g, '');
}
