#!/bin/bash
touch sorted
exit 3
