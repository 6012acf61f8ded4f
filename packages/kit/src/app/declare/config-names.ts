/** Names of the file whose default export is the app. */
export const CONFIG_NAMES = ['kit.config.ts', 'kit.config.js', 'kit.config.mjs'] as const;
