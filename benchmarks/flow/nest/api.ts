import 'reflect-metadata';
import { BullModule } from '@nestjs/bullmq';
import { Module, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { HealthController, OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';
import { PrismaService } from './prisma.service.js';

@Module({
  imports: [BullModule.forRoot({ connection: { url: process.env['REDIS_URL'] } }), BullModule.registerQueue({ name: 'webhooks' })],
  controllers: [OrdersController, HealthController],
  providers: [OrdersService, PrismaService],
})
class AppModule {}

const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), { logger: ['error', 'warn'] });
app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }));
app.enableShutdownHooks();
await app.listen(Number(process.env['PORT']), '127.0.0.1');
