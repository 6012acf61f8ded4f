import { defineErrors } from 'kit';

export const flagErrors = defineErrors('feature_flags', {
  feature_not_available: {
    status: 404,
    detail: 'This feature is not available to you yet.',
    remedy: 'Wait until the feature is released, or ask for access.',
  },
});
