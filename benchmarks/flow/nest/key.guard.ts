import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { authOf } from './auth.js';
import { PrismaService } from './prisma.service.js';

export interface Caller {
  readonly id: string;
  readonly keyId: string;
}
type Request = FastifyRequest & { caller?: Caller };

@Injectable()
export class KeyGuard implements CanActivate {
  private readonly auth: ReturnType<typeof authOf>;

  constructor(prisma: PrismaService) {
    this.auth = authOf(prisma, new Redis(process.env['REDIS_URL'] ?? ''));
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const [scheme, given] = request.headers.authorization?.split(' ') ?? [];
    if (scheme !== 'Bearer' || given === undefined) throw new UnauthorizedException();
    const { valid, key } = await this.auth.api.verifyApiKey({ body: { key: given } });
    if (!valid || key === null) throw new UnauthorizedException();
    request.caller = { id: key.referenceId, keyId: key.id };
    return true;
  }
}

export const CurrentCaller = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<Request>().caller,
);
