import { modelResource, type AdminDeclaration } from 'kit/admin';
import { featureFlags } from './models.ts';

export const flagAdmin: AdminDeclaration = {
  resources: [
    modelResource(featureFlags, {
      label: 'Feature flags',
      singular: 'Feature flag',
      group: 'System',
      columns: ['name', 'percentage', 'updated_at'],
    }),
  ],
};
