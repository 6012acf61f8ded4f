/** What the app's process tells `kit dev`. */
export type FromApp =
  | { readonly type: 'pending'; readonly migrations: readonly string[]; readonly database: string }
  | { readonly type: 'migrated'; readonly migrations: readonly string[] }
  | { readonly type: 'client'; readonly file: string; readonly problem?: string }
  | { readonly type: 'ready'; readonly title: string; readonly url: string; readonly links: readonly (readonly [string, string])[] };

/** What `kit dev` answers to `pending`. */
export interface ToApp {
  readonly migrate: boolean;
}
