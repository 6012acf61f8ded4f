import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

const parts: (() => Promise<unknown>)[] = [
  () => import('./late-styles.ts'),
  () => import('./feedback/late-messages.ts'),
  () => import('./feedback/late-tooltip.ts'),
];

/** A part of the site that is not in the first load, with the styles of its components. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>): LazyExoticComponent<ComponentType<P>> {
  parts.push(load);
  return lazy(async () => {
    const [part] = await Promise.all([load(), import('./late-styles.ts')]);
    return { default: part };
  });
}

/** Once the first page is there: a message, a dialog or the login must not wait for a server that is away by then. */
export async function loadTheRest(): Promise<void> {
  await Promise.allSettled(parts.map((load) => load()));
}
