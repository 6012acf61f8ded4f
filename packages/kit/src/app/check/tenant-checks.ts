/** Checks of apps with tenants. */
export const TENANT_CHECKS = {
  W039: {
    title: 'API keys act in every tenant of their owner',
    explanation:
      'A key from before the app had tenants is bound to none of them: it acts in every tenant that its owner is or becomes a member of, with the roles of the owner there. New keys are bound to one tenant.',
    remedy:
      'Bind each with `kit apikey bind --prefix <prefix> --tenant <tenant>`, or rotate it. `--tenant "*"` says that a key is meant to act in all of them.',
  },
} as const;
