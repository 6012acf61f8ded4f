import { expect, test } from 'vitest';
import { describeForeignLibrary, type BusinessTransaction } from '../../../../../test/webhooks/foreign-library.ts';
import { openPrisma, type OrderTransaction } from '../../../../../test/webhooks/prisma/client.ts';
import { prismaTransaction } from '../../../../db/engine/foreign/prisma.ts';

describeForeignLibrary(
  'Prisma',
  {
    open: ({ dialect, url, path }) => {
      const prisma = openPrisma(dialect, dialect === 'postgres' ? url : `file:${path}`);
      const business = (tx: OrderTransaction): BusinessTransaction => ({
        executor: (options) => prismaTransaction(tx, options),
        nested: (work) => tx.$transaction((inner) => work(business(inner))),
      });
      return {
        transact: (order, work) =>
          prisma.$transaction(async (tx) => {
            await tx.order.create({ data: { id: order, total: '12.00' } });
            return work(business(tx));
          }),
        outside: () => prismaTransaction(prisma),
        close: () => prisma.$disconnect(),
      };
    },
  },
  () => {
    test('another provider is refused', () => {
      const tx = { _activeProvider: 'mysql', $queryRawUnsafe: async () => [] };
      expect(() => prismaTransaction(tx)).toThrow(expect.objectContaining({ code: 'database_unsupported' }));
    });
  },
);
