#!/usr/bin/env bash
# A job on several hosts: run this once on each of them. The same as `llcg multinode`, whose --help explains it.
exec llcg multinode "$@"
