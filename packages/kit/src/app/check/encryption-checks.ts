/** Checks of encrypted columns, as the page of checks explains them. */
export const ENCRYPTION_CHECKS = {
  E036: {
    title: 'Keys of encrypted columns are missing',
    explanation:
      'A model has encrypted columns, and DATA_KEYS is not set, or a key in it cannot be used. Columns that can be searched also need DATA_SEARCH_KEYS.',
    remedy: 'Set DATA_KEYS and DATA_SEARCH_KEYS to what `kit data-keys generate` prints, from a secret store.',
  },
  E037: {
    title: 'An encrypted column is used for what a ciphertext cannot do',
    explanation:
      'A resource or a controller orders, searches, groups, measures or looks rows up by an encrypted column, requires it for a computed field, shows it to everyone, or exports it without a permission of its own.',
    remedy:
      "Filter it with `eq` and `in` (`.encrypted({ search: 'equality' })`), show it by `fields: { … visibleTo(permission) }`, and give `export` a permission.",
  },
} as const;

/** Checks of secrets that are stored in plaintext. */
export const UNENCRYPTED_CHECKS = {
  W025: {
    title: 'Secrets of one-time codes are not encrypted',
    explanation:
      'Users have a second factor, and ACCOUNT_SECRET_KEYS is not set: whoever reads the database or a backup can compute their one-time codes.',
    remedy: 'Set ACCOUNT_SECRET_KEYS to what `kit user generate-key` prints, then run `kit user encrypt-secrets`.',
  },
} as const;
